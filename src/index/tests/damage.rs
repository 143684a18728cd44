//! Damage of every kind, and other processes.
