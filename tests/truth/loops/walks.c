/* Loops that hop about in memory; LOOP says which. */
#include "loops.h"

#define CHASE 1   /* a linked ring in random order */
#define CHASE_WORK 2 /* the same with arithmetic beside it */
#define PROBE 3   /* look-ups in a hash table with open addressing */
#define SEARCH 4  /* binary search in a sorted array */
#define GATHER 5  /* a sum over random places */
#define TREE 6    /* look-ups in a binary search tree */
#define SCATTER 7 /* counting into random places */
#define LISTS 8   /* chained hash buckets, compared by key */
#define ATOMIC 9  /* atomic increments of random places */
#define GATHER_FP 10 /* a sparse dot product */

struct node { u64 key; struct node *left, *right, *next; };
struct work { u64 n, state, at; u64 *words; double *reals; struct node *nodes, *root, **buckets; };

static u64 *ring(u64 n, u64 *state) {
    u64 *order = memory(n * 8), *next = memory(n * 8);
    for (u64 i = 0; i < n; i++) order[i] = i;
    for (u64 i = n - 1; i > 0; i--) {
        u64 j = scramble(state) % (i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    for (u64 i = 0; i < n; i++) next[order[i]] = order[(i + 1) % n];
    free(order);
    return next;
}

static struct node *balanced(struct node *nodes, u64 *places, u64 from, u64 to) {
    if (from >= to) return 0;
    u64 middle = (from + to) / 2;
    struct node *node = &nodes[places[middle]];
    node->key = 2 * middle;
    node->left = balanced(nodes, places, from, middle);
    node->right = balanced(nodes, places, middle + 1, to);
    return node;
}

static struct work *prepare(size_t bytes) {
    struct work *w = memory(sizeof *w);
    w->state = 88172645463325252ull;
    w->at = 0;
#if LOOP == TREE || LOOP == LISTS
    w->n = bytes / sizeof(struct node);
    w->nodes = memory(w->n * sizeof(struct node));
    u64 *places = ring(w->n, &w->state);
#if LOOP == TREE
    w->root = balanced(w->nodes, places, 0, w->n);
#else
    w->buckets = memory(w->n / 2 * sizeof *w->buckets);
    memset(w->buckets, 0, w->n / 2 * sizeof *w->buckets);
    for (u64 i = 0; i < w->n; i++) {
        struct node *node = &w->nodes[places[i]];
        node->key = 2 * i;
        node->next = w->buckets[i % (w->n / 2)];
        w->buckets[i % (w->n / 2)] = node;
    }
#endif
    free(places);
#elif LOOP == CHASE || LOOP == CHASE_WORK
    w->n = bytes / 8;
    w->words = ring(w->n, &w->state);
#else
    w->n = bytes / 8;
    w->words = memory(bytes);
    w->reals = (double *)w->words;
    for (u64 i = 0; i < w->n; i++) w->words[i] = LOOP == SEARCH ? 2 * i : 0;
#if LOOP == PROBE
    for (u64 i = 0; i < w->n / 2; i++) {
        u64 key = scramble(&w->state) | 1, at = key * 0x9e3779b97f4a7c15ull % w->n;
        while (w->words[at]) at = at + 1 == w->n ? 0 : at + 1;
        w->words[at] = key;
    }
#elif LOOP == GATHER_FP
    for (u64 i = 0; i < w->n; i++) w->reals[i] = 1.0;
#endif
#endif
    return w;
}

#define ROUNDS 2000

static u64 step(struct work *w) {
    u64 state = w->state, n = w->n, at = w->at, sum = 0;
    double real = 0;
    for (int round = 0; round < ROUNDS; round++) {
#if LOOP == CHASE
        at = w->words[at];
#elif LOOP == CHASE_WORK
        at = w->words[at];
        sum = (sum ^ (sum << 3)) + round;
        sum = (sum ^ (sum >> 5)) + 7;
        sum = (sum << 1) ^ 3;
#elif LOOP == PROBE
        u64 key = scramble(&state);
        u64 place = key * 0x9e3779b97f4a7c15ull % n;
        while (w->words[place] && w->words[place] != key) place = place + 1 == n ? 0 : place + 1;
        sum += place;
#elif LOOP == SEARCH
        u64 key = scramble(&state) % (2 * n), low = 0, high = n;
        while (low < high) {
            u64 middle = (low + high) / 2;
            if (w->words[middle] < key) low = middle + 1;
            else high = middle;
        }
        sum += low;
#elif LOOP == GATHER
        sum += w->words[scramble(&state) % n];
#elif LOOP == TREE
        u64 key = scramble(&state) % (2 * n);
        struct node *node = w->root;
        while (node && node->key != key) node = key < node->key ? node->left : node->right;
        sum += node != 0;
#elif LOOP == SCATTER
        w->words[scramble(&state) % n]++;
#elif LOOP == LISTS
        u64 key = 2 * (scramble(&state) % n);
        struct node *node = w->buckets[key / 2 % (n / 2)];
        while (node && node->key != key) node = node->next;
        sum += node != 0;
#elif LOOP == ATOMIC
        __atomic_fetch_add(&w->words[scramble(&state) % n], 1, __ATOMIC_RELAXED);
#elif LOOP == GATHER_FP
        real += w->reals[scramble(&state) % n] * 1.5;
#endif
    }
    w->state = state;
    w->at = at;
    sink = sum + at + (u64)real;
    return ROUNDS;
}
