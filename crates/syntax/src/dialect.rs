//! The dialect of the tokeniser and the parser: sqlparser's generic one with PostgreSQL's operators.
//!
//! What differs from the generic dialect: `^` is the power and binds closer than `*`, `||`, `&`, `|`, `<<` and the
//! regular expression operators bind less than `+` and closer than comparisons, digits may be grouped by `_`, and `#` and `@` are no letters. Options of columns may be those of
//! [`column_options`]; there is `is json`, and there are [more expressions](extra).

use std::any::TypeId;

use functions::json::IS_JSON;
use sqlparser::ast::{ColumnOption, Expr, UnaryOperator, Value};
use sqlparser::dialect::{Dialect, GenericDialect, Precedence};
use sqlparser::keywords::{Keyword, RESERVED_FOR_COLUMN_ALIAS};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::call::call;
use crate::depth;
use crate::extra::Infix;
use crate::{column_options, extra};

/// PostgreSQL's operators in the generic grammar.
#[derive(Debug)]
pub struct Atoll;

/// The dialect that all texts are read in.
pub static DIALECT: Atoll = Atoll;

/// A parser of the tokens of one statement.
pub(super) fn parser(tokens: Vec<TokenWithSpan>) -> Parser<'static> {
    Parser::new(&DIALECT)
        .with_tokens_with_locations(tokens)
        .with_recursion_limit(depth::PARSER_RECURSION)
}

const GENERIC: GenericDialect = GenericDialect;

/// The precedence of operators, in PostgreSQL's order; a greater number binds closer.
const fn binding(precedence: Precedence) -> u8 {
    match precedence {
        Precedence::Period => 200,
        Precedence::DoubleColon => 140,
        Precedence::AtTz => 110,
        Precedence::Caret => 100,
        Precedence::MulDivModOp => 90,
        Precedence::PlusMinus => 80,
        Precedence::Xor => 75,
        Precedence::Ampersand | Precedence::Pipe | Precedence::Colon | Precedence::PgOther => 70,
        Precedence::Between | Precedence::Like => 60,
        Precedence::Eq => 50,
        Precedence::Is => 40,
        Precedence::UnaryNot => 30,
        Precedence::And => 20,
        Precedence::Or => 10,
    }
}

/// `expr is [not] json [value | scalar | array | object]`, if that comes next: a call of a function that statements cannot
/// write.
fn is_json(parser: &mut Parser<'_>, expr: &Expr) -> Option<Expr> {
    let word = |place: usize| match &parser.peek_nth_token_ref(place).token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    };
    let not = word(1) == "not";
    let at = 1 + usize::from(not);
    if word(0) != "is" || word(at) != "json" {
        return None;
    }
    let kind = word(at + 1);
    let named = matches!(&kind[..], "value" | "scalar" | "array" | "object");
    for _ in 0..=at + usize::from(named) {
        parser.advance_token();
    }
    let kind = if named { &kind[..] } else { "value" };
    let kind = Expr::value(Value::SingleQuotedString(kind.into()));
    let tested = call(IS_JSON, vec![expr.clone(), kind]);
    Some(if not {
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr: Box::new(tested),
        }
    } else {
        tested
    })
}

/// Passes questions about the grammar on to the generic dialect.
macro_rules! as_generic {
    ($($question:ident)*) => {
        $(fn $question(&self) -> bool {
            GENERIC.$question()
        })*
    };
}

impl Dialect for Atoll {
    // In places the parser asks for the generic dialect instead of for what a dialect supports.
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        GENERIC.is_delimited_identifier_start(ch)
    }

    // `#` and `@` begin operators: `j@>'{}'`, `j#>'{a}'`.
    fn is_identifier_start(&self, ch: char) -> bool {
        GENERIC.is_identifier_start(ch) && !matches!(ch, '#' | '@')
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        GENERIC.is_identifier_part(ch) && !matches!(ch, '#' | '@')
    }

    fn supports_numeric_literal_underscores(&self) -> bool {
        true
    }

    fn supports_order_by_all(&self) -> bool {
        true
    }

    // These begin what follows the select list; as names of columns they need `as`, as in PostgreSQL.
    fn is_column_alias(&self, word: &Keyword, _: &mut Parser<'_>) -> bool {
        let begins = [Keyword::FOR, Keyword::ON, Keyword::TO, Keyword::WINDOW];
        !RESERVED_FOR_COLUMN_ALIAS.contains(word) && !begins.contains(word)
    }

    fn supports_alter_column_type_using(&self) -> bool {
        true
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        binding(precedence)
    }

    fn parse_column_option(
        &self,
        parser: &mut Parser<'_>,
    ) -> Result<Option<Result<Option<ColumnOption>, ParserError>>, ParserError> {
        let own = column_options::own(parser)?;
        Ok(own.map(|option| Ok(Some(option))))
    }

    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        expr: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        match extra::infix(parser) {
            Some(infix) => Some(extra::parsed(parser, expr, infix, precedence)),
            None => is_json(parser, expr).map(Ok),
        }
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        extra::trim(parser).or_else(|| extra::before(parser, binding(Precedence::PgOther)))
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        let precedence = match parser.peek_token_ref().token {
            Token::Caret => Precedence::Caret,
            Token::StringConcat
            | Token::ShiftLeft
            | Token::ShiftRight
            | Token::Tilde
            | Token::TildeAsterisk
            | Token::ExclamationMarkTilde
            | Token::ExclamationMarkTildeAsterisk
            | Token::DoubleTilde
            | Token::DoubleTildeAsterisk
            | Token::ExclamationMarkDoubleTilde
            | Token::ExclamationMarkDoubleTildeAsterisk
            | Token::CaretAt
            | Token::Sharp => Precedence::PgOther,
            _ => match extra::infix(parser)? {
                Infix::IsNull | Infix::NotNull => Precedence::Is,
                _ => return None,
            },
        };
        Some(Ok(binding(precedence)))
    }

    as_generic! {
        supports_unicode_string_literal
        supports_partition_by_after_order_by
        supports_array_join_syntax
        supports_group_by_expr
        supports_group_by_with_modifier
        supports_left_associative_joins_without_parens
        supports_connect_by
        supports_match_recognize
        supports_pipe_operator
        supports_start_transaction_modifier
        supports_window_function_null_treatment_arg
        supports_dictionary_syntax
        supports_window_clause_named_window_reference
        supports_parenthesized_set_variables
        supports_select_wildcard_except
        support_map_literal_syntax
        allow_extract_custom
        allow_extract_single_quotes
        supports_extract_comma_syntax
        supports_create_view_comment_syntax
        supports_parens_around_table_factor
        supports_values_as_table_factor
        supports_create_index_with_clause
        supports_explain_with_utility_options
        supports_limit_comma
        supports_update_order_by
        supports_from_first_select
        supports_projection_trailing_commas
        supports_asc_desc_in_column_definition
        supports_try_convert
        supports_bitwise_shift_operators
        supports_comment_on
        supports_load_extension
        supports_named_fn_args_with_assignment_operator
        supports_struct_literal
        supports_empty_projections
        supports_nested_comments
        supports_multiline_comment_hints
        supports_user_host_grantee
        supports_string_escape_constant
        supports_array_typedef_with_brackets
        supports_match_against
        supports_set_names
        supports_comma_separated_set_assignments
        supports_filter_during_aggregation
        supports_select_wildcard_exclude
        supports_data_type_signed_suffix
        supports_interval_options
        supports_quote_delimited_string
        supports_select_wildcard_replace
        supports_select_wildcard_ilike
        supports_select_wildcard_rename
        supports_optimize_table
        supports_install
        supports_detach
        supports_prewhere
        supports_with_fill
        supports_limit_by
        supports_interpolate
        supports_settings
        supports_select_format
        supports_comment_optimizer_hint
        supports_constraint_keyword_without_name
        supports_key_column_option
        supports_comma_separated_trim
        supports_cte_without_as
        supports_select_item_multi_column_alias
        supports_xml_expressions
    }
}
