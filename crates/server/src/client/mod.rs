//! One client: [`startup`] until it is let in, then a [`conversation`]: [`simple`] queries, statements that are prepared and
//! [bound](extended), [`cursors`], [`copy`], and [`settings`] that clients ask about or change. [`rows`] sends results, which are
//! [`sending`] piece by piece.

mod calls;
pub(crate) mod control;
pub(crate) mod conversation;
mod copy;
mod copy_binary;
mod copy_columns;
mod copy_fields;
mod copy_format;
mod copy_in;
mod copy_lines;
mod copy_rows;
mod cursor_text;
mod cursors;
mod extended;
mod fetching;
mod kept;
mod known;
mod parts;
mod portal;
mod rows;
mod sending;
mod settings;
mod simple;
pub(crate) mod startup;
mod value_kinds;
