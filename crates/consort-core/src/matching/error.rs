//! Errors of requests for a matching or an assignment.

/// Reason why there is no matching or assignment.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MatchingError {
    /// A cost is no cost.
    #[error(
        "cost of threads {first} and {second} is {value}; it must be a number, or infinite where they must not meet"
    )]
    Cost {
        /// One thread.
        first: usize,
        /// The other.
        second: usize,
        /// The value that was given.
        value: f64,
    },
    /// A thread's cost of being alone is no cost.
    #[error("cost of thread {thread} alone is {value}; it must be a finite number")]
    Alone {
        /// The thread.
        thread: usize,
        /// The value that was given.
        value: f64,
    },
    /// Lists that must be of one length are not.
    #[error("{given} values of {what}, where {threads} threads need one each")]
    Length {
        /// Kind of the values.
        what: &'static str,
        /// Number of values that were given.
        given: usize,
        /// Number of threads, and so of values that would be right.
        threads: usize,
    },
    /// More threads than places.
    #[error("{threads} threads, where there is room for {most}")]
    TooMany {
        /// Number of threads that were given.
        threads: usize,
        /// Number of threads that would fit.
        most: usize,
    },
    /// A group that cannot have a core beside the groups before it.
    #[error("no core is left that group {group} may use; give it more cores or fewer threads")]
    NoSeat {
        /// The group's number.
        group: usize,
    },
}
