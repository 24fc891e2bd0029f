//! Constraints as `create table` and `alter table` declare them.

use messages::{Error, Result};
use sqlparser::ast::{
    CheckConstraint, ColumnOption, ColumnOptionDef, ConstraintCharacteristics,
    ConstraintReferenceMatchKind, DeferrableInitial, Expr, ForeignKeyConstraint, Ident,
    IndexColumn, ReferentialAction, TableConstraint,
};
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};
use table::{Action, Deferral};

use crate::names::{column_name, table_name, written};
use crate::words::{self, is_word};
use crate::{dialect, grammar, kept};

/// A constraint as the statement has it.
#[derive(Debug)]
pub struct Constraint {
    /// The name that it was given.
    pub name: Option<String>,
    /// Whether it holds, unless the table says that keys are declared only.
    pub held: bool,
    /// When it is looked at.
    pub deferral: Deferral,
    /// Whether rows that are there need not agree: `not valid`.
    pub unchecked: bool,
    /// What it demands.
    pub what: What,
}

/// What a constraint demands.
#[derive(Debug)]
pub enum What {
    /// A primary key of these columns.
    Primary(Vec<String>),
    /// A unique key of these columns.
    Unique(Vec<String>),
    /// That a condition is not false.
    Check {
        /// The condition, as it is written.
        text: String,
    },
    /// A foreign key.
    Foreign {
        /// The columns of the table.
        columns: Vec<String>,
        /// The table that they refer to.
        parent: String,
        /// Empty for the primary key.
        parent_columns: Vec<String>,
        /// What becomes of rows whose parent is deleted.
        on_delete: Action,
        /// What becomes of rows whose parent gets another key.
        on_update: Action,
        /// Those of `columns` that `on_delete` sets; all if empty.
        delete_columns: Vec<String>,
        /// `match full`.
        full: bool,
    },
}

/// `set constraints {all | name, ...} {deferred | immediate}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetConstraints {
    /// As [`written`]; none for `all`.
    pub names: Option<Vec<String>>,
    /// At the end of the transaction; at that of each statement if not.
    pub deferred: bool,
}

/// Reads `set constraints`; `None` of other statements.
///
/// # Errors
/// [`Error::Syntax`] with a place.
pub(super) fn set(tokens: &[TokenWithSpan]) -> Result<Option<SetConstraints>> {
    let mut leading = words::leading(tokens);
    if leading.next().as_deref() != Some("set") || leading.next().as_deref() != Some("constraints")
    {
        return Ok(None);
    }
    let mut parser = dialect::parser(tokens.to_vec());
    words::need(&mut parser, "set")?;
    words::need(&mut parser, "constraints")?;
    let names = if words::word(&mut parser, "all") {
        None
    } else {
        let names = parser.parse_comma_separated(|parser| parser.parse_object_name(false))?;
        Some(names.iter().map(written).collect::<Result<Vec<_>>>()?)
    };
    let deferred = words::word(&mut parser, "deferred");
    if !deferred {
        words::need(&mut parser, "immediate")?;
    }
    words::end(&mut parser)?;
    Ok(Some(SetConstraints { names, deferred }))
}

/// Puts quotes around names of columns that the parser would take for MySQL's indexes: `key`, `index`, `fulltext`, `spatial`.
pub(super) fn quoted(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let table = words::leading(&tokens).take(6).any(|word| word == "table");
    if !table {
        return tokens;
    }
    let names = ["key", "index", "fulltext", "spatial"];
    let mut before: Option<Token> = None;
    for own in &mut tokens {
        if matches!(own.token, Token::Whitespace(_)) {
            continue;
        }
        let begins = match &before {
            Some(Token::LParen | Token::Comma) => true,
            Some(word) => is_word(word, "add"),
            None => false,
        };
        if begins && names.iter().any(|name| is_word(&own.token, name)) {
            let name = own.token.to_string().to_lowercase();
            own.token = Token::make_word(&name, Some('"'));
        }
        before = Some(own.token.clone());
    }
    tokens
}

/// What the name begins with that [`mark`] gives the index of a foreign key, which PostgreSQL's grammar has not.
const MARK: &str = "\u{1}sets";

/// Moves the columns of `on delete set null (a, b)`, which the parser does not know, to where it reads the name of an index.
pub(super) fn mark(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let deletes = tokens.iter().any(|own| is_word(&own.token, "delete"));
    if !deletes || !tokens.iter().any(|own| is_word(&own.token, "foreign")) {
        return tokens;
    }
    while let Some((key, (open, close))) = listed(&tokens) {
        let names = tokens[open..=close]
            .iter()
            .filter_map(|own| match &own.token {
                Token::Word(word) if word.quote_style.is_some() => Some(word.value.clone()),
                Token::Word(word) => Some(word.value.to_lowercase()),
                _ => None,
            });
        let value = names.fold(MARK.to_owned(), |all, name| format!("{all}\u{1}{name}"));
        tokens.drain(open..=close);
        let span = tokens[key].span;
        tokens.insert(
            key + 1,
            TokenWithSpan::new(Token::make_word(&value, Some('"')), span),
        );
        let space = Token::Whitespace(Whitespace::Space);
        tokens.insert(key + 1, TokenWithSpan::new(space, span));
    }
    tokens
}

/// The place of the word `key` of a foreign key with a list of columns behind `on delete set ...`, and those of the list's
/// parentheses.
fn listed(tokens: &[TokenWithSpan]) -> Option<(usize, (usize, usize))> {
    let whole: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    let is = |at: usize, word: &str| is_word(&tokens[at].token, word);
    let (mut key, mut found) = (None, None);
    for (nth, places) in whole.windows(5).enumerate() {
        let [on, delete, set, to, open] = places else {
            continue;
        };
        if is(*on, "foreign") && is(*delete, "key") {
            // One that is marked has the name of an index.
            key = (tokens[*set].token == Token::LParen).then_some(*delete);
        }
        if is(*on, "on")
            && is(*delete, "delete")
            && is(*set, "set")
            && (is(*to, "null") || is(*to, "default"))
            && tokens[*open].token == Token::LParen
            && let Some(key) = key
        {
            found = Some((key, nth + 4));
            break;
        }
    }
    let (key, nth) = found?;
    let mut rest = whole[nth..].iter();
    let close = rest.find(|at| tokens[**at].token == Token::RParen)?;
    Some((key, (whole[nth], *close)))
}

/// The columns that [`mark`] has moved.
fn marked(name: &Option<Ident>) -> Result<Vec<String>> {
    let Some(name) = name else {
        return Ok(Vec::new());
    };
    match name.value.strip_prefix(MARK) {
        Some(names) => Ok(names.split('\u{1}').skip(1).map(str::to_owned).collect()),
        None => Err(Error::unsupported(
            "a foreign key has no name before its columns: write `constraint name foreign key`",
        )),
    }
}

/// The constraint that an option of a column is, if it is one.
///
/// # Errors
/// For what no constraint of a column may have.
pub(crate) fn of_column(column: &str, option: &ColumnOptionDef) -> Result<Option<Constraint>> {
    let named = |name: &Option<Ident>| option.name.as_ref().or(name.as_ref()).map(column_name);
    let own = || vec![column.to_owned()];
    Ok(Some(match &option.option {
        ColumnOption::PrimaryKey(key) => {
            grammar::primary_key_parts(key)?;
            Constraint {
                name: named(&key.name),
                held: holds(&key.characteristics),
                deferral: Deferral::Never,
                unchecked: false,
                what: What::Primary(own()),
            }
        }
        ColumnOption::Unique(key) => {
            grammar::unique_parts(key)?;
            Constraint {
                name: named(&key.name),
                held: holds(&key.characteristics),
                deferral: Deferral::Never,
                unchecked: false,
                what: What::Unique(own()),
            }
        }
        ColumnOption::Check(own) => {
            let name = named(&own.name);
            check(own, name)?
        }
        ColumnOption::ForeignKey(key) => {
            let name = named(&key.name);
            foreign(key, name, own())?
        }
        _ => return Ok(None),
    }))
}

/// The constraint that a table declares.
///
/// # Errors
/// For what it may not have, and for constraints of other databases.
pub fn of_table(constraint: &TableConstraint) -> Result<Constraint> {
    let named = |name: &Option<Ident>| name.as_ref().map(column_name);
    Ok(match constraint {
        TableConstraint::PrimaryKey(key) => {
            grammar::primary_key_parts(key)?;
            Constraint {
                name: named(&key.name),
                held: holds(&key.characteristics),
                deferral: Deferral::Never,
                unchecked: false,
                what: What::Primary(key.columns.iter().map(key_column).collect::<Result<_>>()?),
            }
        }
        TableConstraint::Unique(key) => {
            grammar::unique_parts(key)?;
            Constraint {
                name: named(&key.name),
                held: holds(&key.characteristics),
                deferral: Deferral::Never,
                unchecked: false,
                what: What::Unique(key.columns.iter().map(key_column).collect::<Result<_>>()?),
            }
        }
        TableConstraint::ForeignKey(key) => {
            let columns = key.columns.iter().map(column_name).collect();
            foreign(key, named(&key.name), columns)?
        }
        TableConstraint::Check(own) => check(own, named(&own.name))?,
        other => {
            return Err(Error::unsupported(format!(
                "`{other}` is not supported: a table can declare primary, unique and foreign keys, and checks"
            )));
        }
    })
}

/// Whether a key is not `not enforced`.
fn holds(characteristics: &Option<ConstraintCharacteristics>) -> bool {
    let enforced = characteristics.as_ref().and_then(|c| c.enforced);
    enforced != Some(false)
}

fn check(check: &CheckConstraint, name: Option<String>) -> Result<Constraint> {
    if check.enforced == Some(false) {
        return Err(Error::unsupported(
            "`check ... not enforced` is not supported: leave it out",
        ));
    }
    Ok(Constraint {
        name,
        held: true,
        deferral: Deferral::Never,
        unchecked: false,
        what: What::Check {
            text: kept::text(&check.expr)?,
        },
    })
}

fn key_column(column: &IndexColumn) -> Result<String> {
    match &column.column.expr {
        Expr::Identifier(name) => Ok(column_name(name)),
        other => Err(Error::unsupported(format!(
            "a key is made of columns, not of {other}"
        ))),
    }
}

fn foreign(
    key: &ForeignKeyConstraint,
    name: Option<String>,
    columns: Vec<String>,
) -> Result<Constraint> {
    grammar::foreign_key(key)?;
    Ok(Constraint {
        name,
        held: holds(&key.characteristics),
        deferral: deferral(&key.characteristics)?,
        unchecked: false,
        what: What::Foreign {
            columns,
            parent: table_name(&key.foreign_table)?,
            parent_columns: key.referred_columns.iter().map(column_name).collect(),
            on_delete: action(key.on_delete),
            on_update: action(key.on_update),
            delete_columns: marked(&key.index_name)?,
            full: matches!(key.match_kind, Some(ConstraintReferenceMatchKind::Full)),
        },
    })
}

fn action(action: Option<ReferentialAction>) -> Action {
    match action {
        None | Some(ReferentialAction::NoAction) => Action::NoAction,
        Some(ReferentialAction::Restrict) => Action::Restrict,
        Some(ReferentialAction::Cascade) => Action::Cascade,
        Some(ReferentialAction::SetNull) => Action::SetNull,
        Some(ReferentialAction::SetDefault) => Action::SetDefault,
    }
}

/// When a constraint with these characteristics is looked at.
///
/// # Errors
/// For those that contradict each other.
pub(crate) fn deferral(characteristics: &Option<ConstraintCharacteristics>) -> Result<Deferral> {
    let Some(own) = characteristics else {
        return Ok(Deferral::Never);
    };
    match (own.deferrable, &own.initially) {
        (Some(false), Some(DeferrableInitial::Deferred)) => Err(Error::Syntax {
            message: "constraint declared INITIALLY DEFERRED must be DEFERRABLE".to_owned(),
            position: None,
        }),
        (_, Some(DeferrableInitial::Deferred)) => Ok(Deferral::Deferred),
        (Some(true), _) => Ok(Deferral::Immediate),
        _ => Ok(Deferral::Never),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{Statement, parse};

    #[test]
    fn columns_of_set_null_are_kept() {
        let text = "create table t (a int, \"B\" int, foreign key (a, \"B\") references p on delete set null (\"B\"),
            foreign key (a) references p on update cascade, foreign key (a) references p on delete set default ( a ))";
        let Statement::Sql(sql) = parse(text).unwrap().remove(0).statement else {
            panic!()
        };
        let sqlparser::ast::Statement::CreateTable(create) = *sql else {
            panic!()
        };
        let all = create.constraints.iter().map(|own| of_table(own).unwrap());
        let columns: Vec<Vec<String>> = all
            .map(|own| match own.what {
                What::Foreign { delete_columns, .. } => delete_columns,
                _ => panic!(),
            })
            .collect();
        assert_eq!(columns, [vec!["B"], vec![], vec!["a"]]);
    }

    #[test]
    fn keys_are_columns() {
        for text in [
            "create table t (key int primary key, index text, \"a\" int, primary key (key, index))",
            "alter table t add key int, add column index int",
            "create temp table if not exists t (Key int)",
        ] {
            if let Err(e) = parse(text) {
                panic!("{text}: {e}");
            }
        }
    }

    #[test]
    fn constraints_are_set() {
        let read = |text: &str| match parse(text).unwrap().remove(0).statement {
            Statement::Constraints(own) => own,
            other => panic!("{other:?}"),
        };
        assert_eq!(read("set constraints all immediate").names, None);
        let own = read("SET CONSTRAINTS a, s.b DEFERRED");
        assert!(own.deferred);
        assert_eq!(own.names.unwrap().len(), 2);
        assert!(parse("set constraints a").is_err());
    }
}
