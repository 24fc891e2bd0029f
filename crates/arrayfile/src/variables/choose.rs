//! Which variables of a file become an array.

use std::collections::BTreeSet;

use array::DataType;

use crate::error::{Error, Result};
use crate::source::Axis;
use crate::variables::model::{Container, Role, Variable};

/// The most variables that an error lists.
const MOST_LISTED: usize = 20;

/// The most links that are followed on the way to a variable.
const MOST_LINKS: usize = 16;

/// The attributes that name variables which belong to others.
const NAMES_OTHERS: [&str; 4] = ["bounds", "climatology", "coordinates", "grid_mapping"];

/// The variables that are read: those that `member` names, or all data variables. There is one at least, and all have the
/// same dimensions.
///
/// # Errors
/// [`Error::Options`], [`Error::Unsupported`]; each lists what can be chosen.
pub(super) fn chosen(container: &dyn Container, member: Option<&str>) -> Result<Vec<usize>> {
    let variables = container.variables();
    let wrong = |what: String| Error::Options {
        what: format!("{}: {what}", container.path().display()),
    };
    let found = match member {
        Some(member) => {
            let names = member.split(',').map(str::trim);
            let found = names.map(|name| {
                let found = find(variables, name);
                found
                    .or_else(|| find(variables, &aliased(container.aliases(), name)?))
                    .ok_or_else(|| {
                        wrong(format!(
                            "has no variable '{name}'; there are {}",
                            listed(variables)
                        ))
                    })
            });
            found.collect::<Result<Vec<usize>>>()?
        }
        None => data(variables),
    };
    let Some(&first) = found.first() else {
        let elsewhere = variables.iter().find(|of| of.role == Role::Elsewhere);
        if let Some((of, Err(what))) = elsewhere.map(|of| (of, &of.data_type)) {
            let what = format!("has no data variable of its own, and '{}' {what}", of.name);
            return Err(Error::unsupported(container.path(), what));
        }
        let list = listed(variables);
        return Err(wrong(format!(
            "has no data variable; choose one with --member: there are {list}"
        )));
    };
    if !found
        .iter()
        .all(|&of| same(&variables[of], &variables[first]))
    {
        let list = listed(variables);
        return Err(wrong(format!(
            "has variables of different dimensions; choose one with --member, or several of the same as --member a,b: there \
             are {list}"
        )));
    }
    let others = match found.len() {
        1 => String::new(),
        _ => format!(
            "; choose others with --member: there are {}",
            listed(variables)
        ),
    };
    for &of in &found {
        let variable = &variables[of];
        let what = match &variable.data_type {
            Err(what) => what.as_str(),
            Ok(_) if variable.extents.is_empty() => "has a single value and no dimensions",
            Ok(_) => continue,
        };
        let what = format!("'{}' {what}{others}", variable.name);
        return Err(Error::unsupported(container.path(), what));
    }
    Ok(found)
}

/// The variable of a name, which may leave out its groups where that is clear.
fn find(variables: &[Variable], name: &str) -> Option<usize> {
    let name = name.trim_start_matches('/');
    let whole = variables.iter().position(|of| of.name == name);
    whole.or_else(|| {
        let mut short = (0..variables.len()).filter(|&at| variables[at].short_name() == name);
        short.next().filter(|_| short.next().is_none())
    })
}

/// What a path stands for in which links are followed; `None` if they lead nowhere new.
fn aliased(aliases: &[(String, String)], name: &str) -> Option<String> {
    let mut name = name.trim_start_matches('/').to_owned();
    let mut followed = 0;
    loop {
        let next = aliases.iter().find_map(|(alias, target)| {
            let rest = name.strip_prefix(alias.as_str())?;
            (rest.is_empty() || rest.starts_with('/')).then(|| format!("{target}{rest}"))
        });
        match next {
            Some(next) if followed < MOST_LINKS => {
                next.trim_start_matches('/').clone_into(&mut name)
            }
            // Links that lead in a circle.
            Some(_) => return None,
            None => return (followed > 0).then_some(name),
        }
        followed += 1;
    }
}

/// Variables whose values are of interest, and which belong to no others.
fn data(variables: &[Variable]) -> Vec<usize> {
    let mut belong = BTreeSet::new();
    for variable in variables {
        for name in NAMES_OTHERS {
            let names = variable.text(name).unwrap_or("");
            belong.extend(names.split_whitespace().map(|of| of.trim_end_matches(':')));
        }
    }
    let all = variables.iter().enumerate();
    let of_interest = all.filter(|(_, of)| {
        of.role == Role::Data
            && !belong.contains(of.short_name())
            && !belong.contains(of.name.as_str())
    });
    of_interest.map(|(at, _)| at).collect()
}

/// Whether two variables can be attributes of one array.
fn same(a: &Variable, b: &Variable) -> bool {
    let of = |variable: &Variable| -> Vec<_> {
        let extents = variable.extents.iter();
        extents
            .map(|of| (of.length, of.name.clone(), of.coordinates))
            .collect()
    };
    of(a) == of(b)
}

/// What can be chosen, with shapes.
fn listed(variables: &[Variable]) -> String {
    let choices: Vec<&Variable> = variables
        .iter()
        .filter(|of| of.role != Role::Dimension)
        .collect();
    let one = |of: &&Variable| match &of.data_type {
        Ok(data_type) => {
            let data_type = if of.half { DataType::F32 } else { *data_type };
            let lengths: Vec<String> = of.shape().iter().map(u64::to_string).collect();
            if lengths.is_empty() {
                format!("'{}' (a single {data_type})", of.name)
            } else {
                format!("'{}' ({} of {data_type})", of.name, lengths.join(" x "))
            }
        }
        Err(_) => format!("'{}' (not read)", of.name),
    };
    let mut list: Vec<String> = choices.iter().take(MOST_LISTED).map(one).collect();
    if choices.len() > MOST_LISTED {
        list.push(format!("and {} more", choices.len() - MOST_LISTED));
    }
    if list.is_empty() {
        "none".to_owned()
    } else {
        list.join(", ")
    }
}

/// The names of the attributes that variables become: their own, without groups where these differ, and none that a
/// dimension has.
pub(super) fn attribute_names(
    variables: &[Variable],
    fields: &[usize],
    axes: &[Axis],
) -> Vec<String> {
    let short: BTreeSet<&str> = fields
        .iter()
        .map(|&of| variables[of].short_name())
        .collect();
    let clear = short.len() == fields.len();
    let name = |&of: &usize| {
        let variable = &variables[of];
        let name = if clear {
            variable.short_name().to_owned()
        } else {
            variable.name.replace('/', "_")
        };
        if axes.iter().any(|axis| axis.name.as_deref() == Some(&name)) {
            format!("{name}_value")
        } else {
            name
        }
    };
    fields.iter().map(name).collect()
}
