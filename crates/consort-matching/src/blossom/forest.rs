//! Vertices, and blossoms of vertices, with their duals and mates.

/// One vertex or blossom. Vertices come first; blossoms are numbered after them.
#[derive(Default)]
pub(super) struct BlossomNode {
    pub(super) parent: Option<usize>,
    /// The vertex whose mate, if any, lies outside.
    pub(super) base: usize,
    /// Children around the odd cycle, the one with the base first; empty for a vertex.
    pub(super) children: Vec<usize>,
    /// Edge k leads from child k to the next one around.
    pub(super) links: Vec<(usize, usize)>,
    /// All vertices inside.
    pub(super) members: Vec<usize>,
    /// y of a vertex, z of a blossom.
    pub(super) dual: i64,
}

/// The vertices and blossoms of one matching.
pub(super) struct Forest {
    pub(super) nodes: Vec<BlossomNode>,
    /// The partner of each vertex.
    pub(super) mate: Vec<Option<usize>>,
    /// The outermost node around each vertex.
    pub(super) top: Vec<usize>,
    spare: Vec<usize>,
}

impl Forest {
    pub(super) fn new(duals: Vec<i64>) -> Self {
        let vertices = duals.len();
        let vertex = |(base, dual)| BlossomNode {
            base,
            dual,
            members: vec![base],
            ..BlossomNode::default()
        };
        Self {
            nodes: duals.into_iter().enumerate().map(vertex).collect(),
            mate: vec![None; vertices],
            top: (0..vertices).collect(),
            spare: Vec::new(),
        }
    }

    pub(super) fn vertex_count(&self) -> usize {
        self.mate.len()
    }

    pub(super) fn is_blossom(&self, node: usize) -> bool {
        node >= self.vertex_count()
    }

    /// Vertex with which the base of a node is matched, if any.
    pub(super) fn outside_mate(&self, node: usize) -> Option<usize> {
        self.mate[self.nodes[node].base]
    }

    /// Vertices without a mate.
    pub(super) fn exposed_vertices(&self) -> Vec<usize> {
        let free = |&vertex: &usize| self.mate[vertex].is_none();
        (0..self.vertex_count()).filter(free).collect()
    }

    pub(super) fn pair(&mut self, first: usize, second: usize) {
        self.mate[first] = Some(second);
        self.mate[second] = Some(first);
    }

    /// Shrinks an odd cycle of outermost nodes; the first has the base.
    pub(super) fn shrink(&mut self, children: Vec<usize>, links: Vec<(usize, usize)>) -> usize {
        let blossom = self.spare.pop().unwrap_or_else(|| {
            self.nodes.push(BlossomNode::default());
            self.nodes.len() - 1
        });
        let members: Vec<usize> = children
            .iter()
            .flat_map(|&child| self.nodes[child].members.iter().copied())
            .collect();
        for &vertex in &members {
            self.top[vertex] = blossom;
        }
        for &child in &children {
            self.nodes[child].parent = Some(blossom);
        }
        self.nodes[blossom] = BlossomNode {
            base: self.nodes[children[0]].base,
            children,
            links,
            members,
            ..BlossomNode::default()
        };
        blossom
    }

    /// Dissolves an outermost blossom; its children become outermost.
    pub(super) fn open(&mut self, blossom: usize) -> BlossomNode {
        let node = std::mem::take(&mut self.nodes[blossom]);
        for &child in &node.children {
            self.nodes[child].parent = None;
            for &vertex in &self.nodes[child].members {
                self.top[vertex] = child;
            }
        }
        self.spare.push(blossom);
        node
    }

    /// Changes the matching inside a node so that `vertex` is its base.
    pub(super) fn rebase(&mut self, node: usize, vertex: usize) {
        if !self.is_blossom(node) || self.nodes[node].base == vertex {
            return;
        }
        let child = self.child_with(node, vertex);
        self.rebase(child, vertex);
        let at = self.position(node, child);
        for link in links_to_match(at, self.nodes[node].children.len()) {
            self.match_link(node, link);
        }
        let node = &mut self.nodes[node];
        node.children.rotate_left(at);
        node.links.rotate_left(at);
        node.base = vertex;
    }

    fn match_link(&mut self, node: usize, link: usize) {
        let count = self.nodes[node].children.len();
        let (from, to) = self.nodes[node].links[link];
        let (first, second) = (
            self.nodes[node].children[link],
            self.nodes[node].children[(link + 1) % count],
        );
        self.rebase(first, from);
        self.rebase(second, to);
        self.pair(from, to);
    }

    /// The child of `node` around `vertex`.
    fn child_with(&self, node: usize, vertex: usize) -> usize {
        let mut child = vertex;
        while let Some(parent) = self.nodes[child].parent {
            if parent == node {
                break;
            }
            child = parent;
        }
        child
    }

    fn position(&self, node: usize, child: usize) -> usize {
        let children = &self.nodes[node].children;
        children.iter().position(|&c| c == child).unwrap_or(0)
    }

    /// Every blossom around `vertex`, the innermost first.
    pub(super) fn blossoms_around(&self, vertex: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.nodes[vertex].parent, |&node| self.nodes[node].parent)
    }
}

/// The links to match when the base moves from child 0 to child `at` of `count`: every second one
/// on the even way between them.
fn links_to_match(at: usize, count: usize) -> impl Iterator<Item = usize> {
    let (from, to) = if at.is_multiple_of(2) {
        (0, at)
    } else {
        (at + 1, count)
    };
    (from..to).step_by(2)
}
