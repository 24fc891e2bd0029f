//! atoll
