//! `alter table` with several changes, and changes that the parser does not know.
//!
//! ```text
//! alter table [if exists] [only] name [*] change, ...
//! change = rename constraint name to name
//!        | alter constraint name [[not] deferrable] [initially {deferred | immediate}]
//!        | alter [column] name set statistics number | alter [column] name set storage word
//!        | {set | reset} (storage parameter, ...) | cluster on name | set without cluster
//!        | set {logged | unlogged}
//!        | what `identity` reads | what the parser reads
//! ```

use messages::{Error, Result};
use sqlparser::ast::{
    AlterColumnOperation, AlterTableOperation as Operation, ColumnOption, ColumnOptionDef, Ident,
    IndexColumn, Statement as Sql, TableConstraint,
};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use table::Deferral;

use crate::identity::AlterIdentity;
use crate::names::{column_name, written};
use crate::words::{self, is_word, need, word};
use crate::{constraints, dialect, identity};

/// A change of a table that the parser does not know.
#[derive(Clone, Debug)]
pub struct TableChange {
    /// The table, as it is written.
    pub table: String,
    /// Without an error if there is none.
    pub if_exists: bool,
    /// What becomes of it.
    pub change: Change,
}

/// What is changed.
#[derive(Clone, Debug)]
pub enum Change {
    /// `rename constraint`.
    RenameConstraint {
        /// Its name so far.
        from: String,
        /// Its new name.
        to: String,
    },
    /// When a foreign key is looked at.
    Defer {
        /// The name of the constraint.
        name: String,
        /// When it is to be checked.
        deferral: Deferral,
    },
    /// How PostgreSQL would lay the table or one of its columns out, which means nothing here.
    Layout {
        /// The column of the check; none if it is of the table.
        column: Option<String>,
    },
}

/// One of the changes of an `alter table`, as a statement.
#[derive(Debug)]
pub(super) enum Piece {
    Change(TableChange),
    Identity(AlterIdentity),
    Sql(Box<Sql>),
}

/// Reads an `alter table` that makes several changes, or one that the parser does not know; `None` of others. `plain` reads
/// what the parser knows.
///
/// # Errors
/// [`Error::Syntax`] with a place.
pub(super) fn statement(
    tokens: &[TokenWithSpan],
    plain: impl Fn(&[TokenWithSpan]) -> Result<Box<Sql>>,
) -> Result<Option<Vec<Piece>>> {
    let Some((header, segments)) = segments(tokens) else {
        return Ok(None);
    };
    let mut all = Vec::with_capacity(segments.len());
    let single = segments.len() == 1;
    for segment in segments {
        let mut one = header.to_vec();
        one.extend_from_slice(segment);
        if let Some(own) = own(&one, segment)? {
            all.push(Piece::Change(own));
        } else if let Some(own) = identity::statement(&one)? {
            all.push(Piece::Identity(own));
        } else if single && words::leading(segment).next().as_deref() != Some("add") {
            return Ok(None);
        } else {
            all.extend(apart(plain(&one)?));
        }
    }
    Ok(Some(in_order(all)))
}

/// The keys and checks of a column that is added as changes of their own behind it; any other statement as it is.
fn apart(mut sql: Box<Sql>) -> Vec<Piece> {
    let mut added = Vec::new();
    if let Sql::AlterTable(alter) = &mut *sql
        && let [
            Operation::AddColumn {
                column_def,
                if_not_exists: false,
                ..
            },
        ] = &mut alter.operations[..]
    {
        let name = column_def.name.clone();
        column_def.options.retain(|option| {
            let own = of_column(&name, option);
            let stays = own.is_none();
            added.extend(own);
            stays
        });
    }
    let mut all = Vec::with_capacity(1 + added.len());
    if let Sql::AlterTable(alter) = &*sql {
        for constraint in added {
            let mut other = alter.clone();
            other.operations = vec![Operation::AddConstraint {
                constraint,
                not_valid: false,
            }];
            all.push(Piece::Sql(Box::new(Sql::AlterTable(other))));
        }
    }
    all.insert(0, Piece::Sql(sql));
    all
}

/// The constraint of a table that says what an option of a column says, if that is one.
fn of_column(name: &Ident, option: &ColumnOptionDef) -> Option<TableConstraint> {
    let called = |own: &Option<Ident>| option.name.clone().or(own.clone());
    let column = || vec![IndexColumn::from(name.clone())];
    Some(match option.option.clone() {
        ColumnOption::Check(mut own) => {
            own.name = called(&own.name);
            TableConstraint::Check(own)
        }
        ColumnOption::ForeignKey(mut own) => {
            own.name = called(&own.name);
            own.columns = vec![name.clone()];
            TableConstraint::ForeignKey(own)
        }
        ColumnOption::PrimaryKey(mut own) => {
            own.name = called(&own.name);
            own.columns = column();
            TableConstraint::PrimaryKey(own)
        }
        ColumnOption::Unique(mut own) => {
            own.name = called(&own.name);
            own.columns = column();
            TableConstraint::Unique(own)
        }
        _ => return None,
    })
}

/// The words that `alter table` begins with up to the name of the table, and each of its changes.
fn segments(tokens: &[TokenWithSpan]) -> Option<(&[TokenWithSpan], Vec<&[TokenWithSpan]>)> {
    let mut words = words::leading(tokens);
    if words.next().as_deref() != Some("alter") || words.next().as_deref() != Some("table") {
        return None;
    }
    let whole: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_) | Token::EOF))
        .collect();
    let is = |nth: usize, word: &str| {
        whole
            .get(nth)
            .is_some_and(|at| is_word(&tokens[*at].token, word))
    };
    let mut nth = 2;
    if is(nth, "if") && is(nth + 1, "exists") {
        nth += 2;
    }
    if is(nth, "only") {
        nth += 1;
    }
    let token = |nth: usize| whole.get(nth).map(|at| &tokens[*at].token);
    matches!(token(nth), Some(Token::Word(_))).then_some(())?;
    nth += 1;
    while matches!(token(nth), Some(Token::Period)) {
        nth += 2;
    }
    let begins = *whole.get(nth)?;
    // What stands behind the name in PostgreSQL for the tables that inherit from it.
    let star = matches!(token(nth), Some(Token::Mul));
    let first = begins + usize::from(star);
    let (mut from, mut depth) = (first, 0_i32);
    let mut found = Vec::new();
    for at in first..tokens.len() {
        match tokens[at].token {
            Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
            Token::RParen | Token::RBracket | Token::RBrace => depth -= 1,
            Token::Comma if depth == 0 => {
                found.push(&tokens[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    found.push(&tokens[from..]);
    Some((&tokens[..begins], found))
}

/// A change that the parser does not know. `tokens` are the whole statement, `segment` the change.
fn own(tokens: &[TokenWithSpan], segment: &[TokenWithSpan]) -> Result<Option<TableChange>> {
    let words: Vec<String> = words::leading(segment).take(4).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let layout = layout(segment);
    match words[..] {
        ["rename", "constraint", ..] | ["alter", "constraint", ..] => {}
        _ if layout.is_some() => {}
        _ => return Ok(None),
    }
    let mut parser = dialect::parser(tokens.to_vec());
    need(&mut parser, "alter")?;
    need(&mut parser, "table")?;
    let if_exists = word(&mut parser, "if");
    if if_exists {
        need(&mut parser, "exists")?;
    }
    word(&mut parser, "only");
    let table = written(&parser.parse_object_name(false)?)?;
    let change = match words[..] {
        ["rename", "constraint", ..] => {
            need(&mut parser, "rename")?;
            need(&mut parser, "constraint")?;
            let from = column_name(&parser.parse_identifier()?);
            need(&mut parser, "to")?;
            let to = column_name(&parser.parse_identifier()?);
            words::end(&mut parser)?;
            Change::RenameConstraint { from, to }
        }
        ["alter", "constraint", ..] => {
            need(&mut parser, "alter")?;
            need(&mut parser, "constraint")?;
            let name = column_name(&parser.parse_identifier()?);
            let characteristics = parser.parse_constraint_characteristics()?;
            words::end(&mut parser)?;
            if characteristics
                .as_ref()
                .is_some_and(|own| own.enforced.is_some())
            {
                return Err(Error::unsupported(
                    "`alter constraint ... enforced` is not supported: drop the constraint, and add it",
                ));
            }
            let deferral = constraints::deferral(&characteristics)?;
            Change::Defer { name, deferral }
        }
        _ => Change::Layout {
            column: layout.flatten(),
        },
    };
    Ok(Some(TableChange {
        table,
        if_exists,
        change,
    }))
}

/// Whether a change is about how PostgreSQL lays a table out, and of which column.
fn layout(segment: &[TokenWithSpan]) -> Option<Option<String>> {
    let mut parser = Parser::new(&dialect::DIALECT).with_tokens_with_locations(segment.to_vec());
    if word(&mut parser, "alter") {
        word(&mut parser, "column");
        let column = column_name(&parser.parse_identifier().ok()?);
        need(&mut parser, "set").ok()?;
        if word(&mut parser, "statistics") {
            let _negative = parser.consume_token(&Token::Minus);
            parser.parse_literal_uint().ok()?;
        } else {
            need(&mut parser, "storage").ok()?;
            let kinds = ["plain", "external", "extended", "main"];
            kinds
                .iter()
                .any(|kind| word(&mut parser, kind))
                .then_some(())?;
        }
        words::end(&mut parser).ok()?;
        return Some(Some(column));
    }
    if word(&mut parser, "cluster") {
        need(&mut parser, "on").ok()?;
        parser.parse_identifier().ok()?;
    } else {
        need(&mut parser, "set").ok()?;
        if word(&mut parser, "without") {
            need(&mut parser, "cluster").ok()?;
        } else if !word(&mut parser, "logged") {
            need(&mut parser, "unlogged").ok()?;
        }
    }
    words::end(&mut parser).ok()?;
    Some(None)
}

/// Changes in the order in which PostgreSQL makes them, as far as it matters: constraints go first, and the new values of
/// columns that change their types are all made of the old rows.
fn in_order(changes: Vec<Piece>) -> Vec<Piece> {
    let (mut drops, mut types, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    for change in changes {
        let operation = match &change {
            Piece::Sql(sql) => match &**sql {
                Sql::AlterTable(alter) => alter.operations.first(),
                _ => None,
            },
            _ => None,
        };
        match operation {
            Some(Operation::DropConstraint { .. }) => drops.push(change),
            Some(Operation::AlterColumn {
                op: AlterColumnOperation::SetDataType { .. },
                ..
            }) => types.push(change),
            _ => rest.push(change),
        }
    }
    let mut types = types.into_iter();
    if let Some(mut first) = types.next() {
        for other in types {
            if let (Piece::Sql(first), Piece::Sql(other)) = (&mut first, other)
                && let (Sql::AlterTable(first), Sql::AlterTable(other)) = (&mut **first, *other)
            {
                first.operations.extend(other.operations);
            }
        }
        drops.push(first);
    }
    drops.extend(rest);
    drops
}

/// Whether all changes of a statement are of the types of columns, which are made at once.
pub fn only_types(operations: &[Operation]) -> bool {
    operations.iter().all(|operation| {
        matches!(
            operation,
            Operation::AlterColumn {
                op: AlterColumnOperation::SetDataType { .. },
                ..
            }
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{Statement, parse};

    fn read(text: &str) -> Statement {
        parse(text).unwrap().remove(0).statement
    }

    #[test]
    fn changes_are_read_one_by_one() {
        let Statement::Changes(all) = read(
            "alter table if exists only s.t add column a numeric(3, 1) default 1, rename constraint b to c,
             alter d set statistics -1, alter e type int using f(e, 1), alter column g type text, drop constraint h,
             alter i add generated always as identity",
        ) else {
            panic!()
        };
        assert_eq!(all.len(), 6);
        assert!(matches!(&all[1], Statement::Sql(sql) if matches!(&**sql,
            Sql::AlterTable(alter) if alter.operations.len() == 2)));
        assert!(matches!(
            read("alter table t alter constraint c deferrable initially deferred"),
            Statement::Change(TableChange {
                change: Change::Defer {
                    deferral: Deferral::Deferred,
                    ..
                },
                ..
            })
        ));
        assert!(matches!(
            read("alter table t alter a set not null"),
            Statement::Sql(_)
        ));
        assert!(parse("alter table t rename constraint a").is_err());
    }
}
