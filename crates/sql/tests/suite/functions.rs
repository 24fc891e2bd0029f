//! The page of functions in the documents, made of what is registered.

use std::collections::BTreeSet;
use std::path::Path;

use crate::fixture;

/// Functions that PostgreSQL's manual lists, by the sections of its chapter 9.
const SECTIONS: [(&str, &str); 17] = [
    ("9.2 Comparison", "num_nonnulls num_nulls"),
    (
        "9.3 Mathematical",
        "abs acos acosd acosh asin asind asinh atan atan2 atan2d atand atanh cbrt ceil ceiling cos cosd cosh cot cotd degrees div \
         exp factorial floor gcd lcm ln log log10 min_scale mod pi power radians random round scale setseed sign sin sind sinh sqrt \
         tan tand tanh trim_scale trunc width_bucket",
    ),
    (
        "9.4 String",
        "ascii bit_length btrim char_length character_length chr concat concat_ws format initcap left length lower lpad ltrim md5 \
         normalize octet_length overlay parse_ident pg_client_encoding position quote_ident quote_literal quote_nullable regexp_count \
         regexp_instr regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table \
         regexp_substr repeat replace reverse right rpad rtrim split_part starts_with string_to_array string_to_table strpos \
         substr substring to_ascii to_hex translate trim unistr upper",
    ),
    (
        "9.5 Binary string",
        "bit_count convert convert_from convert_to decode encode get_bit get_byte set_bit set_byte sha224 sha256 sha384 sha512",
    ),
    ("9.8 Formatting", "to_char to_date to_number to_timestamp"),
    (
        "9.9 Date and time",
        "age clock_timestamp current_date current_time current_timestamp date_bin date_part date_trunc extract isfinite \
         justify_days justify_hours justify_interval localtime localtimestamp make_date make_interval make_time make_timestamp \
         make_timestamptz now pg_sleep statement_timestamp timeofday timezone transaction_timestamp",
    ),
    ("9.10 Enum", "enum_first enum_last enum_range"),
    ("9.14 UUID", "gen_random_uuid"),
    (
        "9.16 JSON",
        "array_to_json json_array_elements json_array_elements_text json_array_length json_build_array json_build_object json_each \
         json_each_text json_extract_path json_extract_path_text json_object json_object_keys json_populate_record json_strip_nulls \
         json_to_record json_typeof jsonb_array_elements jsonb_array_length jsonb_build_array jsonb_build_object jsonb_each \
         jsonb_extract_path jsonb_insert jsonb_object_keys jsonb_path_exists jsonb_path_query jsonb_pretty jsonb_set \
         jsonb_strip_nulls jsonb_typeof row_to_json to_json to_jsonb",
    ),
    (
        "9.17 Sequence manipulation",
        "currval lastval nextval setval",
    ),
    ("9.18 Conditional", "coalesce greatest least nullif"),
    (
        "9.19 Array",
        "array_append array_cat array_dims array_fill array_length array_lower array_ndims array_position array_positions \
         array_prepend array_remove array_replace array_to_string array_upper cardinality trim_array unnest",
    ),
    (
        "9.20 Range",
        "isempty lower_inc lower_inf range_merge upper_inc upper_inf",
    ),
    (
        "9.21 Aggregate",
        "any_value array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count covar_pop covar_samp every grouping json_agg \
         json_object_agg jsonb_agg jsonb_object_agg max min mode percentile_cont percentile_disc regr_avgx regr_avgy regr_count \
         regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy stddev stddev_pop stddev_samp string_agg sum var_pop var_samp \
         variance",
    ),
    (
        "9.22 Window",
        "cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number",
    ),
    ("9.25 Set returning", "generate_series generate_subscripts"),
    (
        "9.26 System information",
        "col_description current_catalog current_database current_query current_role current_schema current_schemas current_setting current_user \
         format_type has_column_privilege has_database_privilege has_schema_privilege has_sequence_privilege has_table_privilege obj_description \
         pg_backend_pid pg_get_constraintdef pg_get_expr pg_get_indexdef pg_get_serial_sequence pg_get_userbyid pg_get_viewdef pg_has_role pg_table_is_visible \
         pg_typeof session_user shobj_description to_regclass to_regtype user version",
    ),
];

const PATH: &str = "../../docs/reference/functions.md";

fn page(there: &BTreeSet<String>) -> String {
    let list = |names: &[&str]| match names {
        [] => "–".to_owned(),
        names => names
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let mut page = String::from(HEAD);
    let mut listed: BTreeSet<&str> = BTreeSet::new();
    let (mut has, mut all) = (0, 0);
    for (section, names) in SECTIONS {
        listed.extend(names.split_whitespace());
        let (own, lacks): (Vec<&str>, Vec<&str>) = names
            .split_whitespace()
            .partition(|name| there.contains(*name));
        has += own.len();
        all += own.len() + lacks.len();
        page += &format!("| {section} | {} | {} |\n", list(&own), list(&lacks));
    }
    page += &format!("\nThat is {has} of {all}.\n\n## Others\n\n");
    let others: Vec<&str> = there
        .iter()
        .map(String::as_str)
        .filter(|name| !listed.contains(name))
        .collect();
    page += &list(&others);
    page.push('\n');
    page
}

const HEAD: &str = "# Functions

Which functions there are, by the sections of chapter 9 of PostgreSQL's manual. The page is made of what is registered, and a test
keeps it so. That a name is here does not say that it takes all types that PostgreSQL's takes: [the dialect](sql.md) says where
they differ, and whatever is not done is refused.

| section | there | not there |
|---|---|---|
";

#[test]
fn the_page_of_functions_is_what_is_registered() {
    let directory = tempfile::tempdir().unwrap();
    let instance = fixture::instance(
        &fixture::workers(),
        &directory.path().join("test.atoll"),
        64 << 20,
        store::Options::default(),
        sql::Options::spilling_to(directory.path()),
    );
    let wanted = page(&instance.functions().into_iter().collect());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PATH);
    if std::env::var_os("UPDATE_FUNCTIONS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let line = wanted.lines().zip(found.lines()).position(|(a, b)| a != b);
    assert!(
        wanted == found,
        "docs/reference/functions.md differs from line {} on; write it anew with `UPDATE_FUNCTIONS=1 cargo test -p sql --test suite functions`",
        line.map_or(0, |line| line + 1)
    );
}
