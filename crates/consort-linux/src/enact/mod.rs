//! Affinity within original masks, and their restoration whatever happens.
