//! Plots: data in, inline SVG out.
//!
//! Every plot is drawn twice, for wide and for narrow screens, and the page shows one of them, so
//! that text keeps its size. Colours are roles ([`Ink`]) that the page's style sheet fills in, for
//! light and for dark. Legends are text beside the drawing and cannot overlap it.

mod bars;
mod canvas;
mod heat;
mod lines;
mod roofline;
mod rows;
mod scale;
mod spans;
mod spread;

use std::fmt::Write;

pub use bars::Bars;
pub use heat::Heat;
pub use lines::{Axis, Line, Lines, Point};
pub use roofline::Roofline;
pub use spans::{Span, Spans};
pub use spread::Spread;

use canvas::{Drawn, Width};
pub(crate) use canvas::{SERIES, style_sheet};

use crate::error::{Error, Result};
use crate::html::Escaped;
use crate::table::Table;

/// A plot of any kind.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Plot {
    /// Curves over a number.
    Lines(Lines),
    /// Bars per category, side by side or on top of each other.
    Bars(Bars),
    /// The distribution of values per category.
    Spread(Spread),
    /// A matrix, such as one value per pair of nodes.
    Heat(Heat),
    /// Operators under the roofs of the machine.
    Roofline(Roofline),
    /// Rows of spans of time.
    Spans(Spans),
}

impl From<Spans> for Plot {
    fn from(plot: Spans) -> Plot {
        Plot::Spans(plot)
    }
}

impl From<Lines> for Plot {
    fn from(plot: Lines) -> Plot {
        Plot::Lines(plot)
    }
}

impl From<Bars> for Plot {
    fn from(plot: Bars) -> Plot {
        Plot::Bars(plot)
    }
}

impl From<Spread> for Plot {
    fn from(plot: Spread) -> Plot {
        Plot::Spread(plot)
    }
}

impl From<Heat> for Plot {
    fn from(plot: Heat) -> Plot {
        Plot::Heat(plot)
    }
}

impl From<Roofline> for Plot {
    fn from(plot: Roofline) -> Plot {
        Plot::Roofline(plot)
    }
}

impl Plot {
    /// Its title.
    pub fn title(&self) -> &str {
        match self {
            Plot::Lines(plot) => &plot.title,
            Plot::Bars(plot) => &plot.title,
            Plot::Spread(plot) => &plot.title,
            Plot::Heat(plot) => &plot.title,
            Plot::Roofline(plot) => &plot.title,
            Plot::Spans(plot) => &plot.title,
        }
    }

    fn draw(&self, width: Width) -> Drawn {
        match self {
            Plot::Lines(plot) => plot.draw(width),
            Plot::Bars(plot) => plot.draw(width),
            Plot::Spread(plot) => plot.draw(width),
            Plot::Heat(plot) => plot.draw(),
            Plot::Roofline(plot) => plot.draw(width),
            Plot::Spans(plot) => plot.draw(width),
        }
    }

    /// One line that says what is to be seen, for those who do not see it.
    fn description(&self) -> String {
        match self {
            Plot::Lines(plot) => plot.description(),
            Plot::Bars(plot) => plot.description(),
            Plot::Spread(plot) => plot.description(),
            Plot::Heat(plot) => plot.description(),
            Plot::Roofline(plot) => plot.description(),
            Plot::Spans(plot) => plot.description(),
        }
    }

    /// The values that are drawn.
    fn numbers(&self) -> Table {
        match self {
            Plot::Lines(plot) => plot.numbers(),
            Plot::Bars(plot) => plot.numbers(),
            Plot::Spread(plot) => plot.numbers(),
            Plot::Heat(plot) => plot.numbers(),
            Plot::Roofline(plot) => plot.numbers(),
            Plot::Spans(plot) => plot.numbers(),
        }
    }

    /// Names of what the colours stand for; none where there is but one.
    fn legend(&self) -> Vec<&str> {
        let names: Vec<&str> = match self {
            Plot::Lines(plot) => plot.series.iter().map(|line| line.name.as_str()).collect(),
            Plot::Bars(plot) => plot.series.iter().map(String::as_str).collect(),
            Plot::Spans(plot) => plot.series.iter().map(String::as_str).collect(),
            Plot::Spread(_) => Vec::new(),
            Plot::Heat(plot) if plot.pairs => vec!["local", "remote"],
            Plot::Heat(_) => Vec::new(),
            Plot::Roofline(plot) => plot.series.iter().map(String::as_str).collect(),
        };
        if names.len() < 2 { Vec::new() } else { names }
    }

    /// Writes the figure; `id` is unique in the page and plain ASCII.
    ///
    /// # Errors
    ///
    /// [`Error::Plot`] where the drawing fails, which finite data does not.
    pub(crate) fn html(&self, id: &str, out: &mut String) -> Result<()> {
        let drawn = |width| {
            self.draw(width).map_err(|why| Error::Plot {
                title: self.title().to_owned(),
                why,
            })
        };
        let small = if matches!(self, Plot::Heat(_)) {
            " small"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "<figure class=\"plot{small}\"><figcaption>{}</figcaption>",
            Escaped(self.title())
        );
        let legend = self.legend();
        if !legend.is_empty() {
            out.push_str("<ul class=\"legend\">");
            for (at, name) in legend.iter().enumerate() {
                let series = at % SERIES + 1;
                let _ = write!(out, "<li><i class=\"s{series}\"></i>{}</li>", Escaped(name));
            }
            out.push_str("</ul>\n");
        }
        let description = self.description();
        if small.is_empty() {
            picture(
                out,
                &drawn(Width::Wide)?,
                "wide",
                id,
                self.title(),
                &description,
            );
        }
        picture(
            out,
            &drawn(Width::Narrow)?,
            if small.is_empty() { "narrow" } else { "any" },
            id,
            self.title(),
            &description,
        );
        out.push_str("<details><summary>numbers</summary>\n");
        self.numbers().html(out);
        out.push_str("</details></figure>\n");
        Ok(())
    }
}

/// An SVG with the names that assistive technology reads.
fn picture(
    out: &mut String,
    drawing: &canvas::Drawing,
    class: &str,
    id: &str,
    title: &str,
    about: &str,
) {
    let (width, height) = drawing.size;
    // A small one keeps its size.
    let own = if class == "any" {
        format!(" width=\"{}\"", width / canvas::PX)
    } else {
        String::new()
    };
    let _ = writeln!(
        out,
        "<svg class=\"{class}\"{own} role=\"img\" viewBox=\"0 0 {width} {height}\" \
         aria-labelledby=\"{id}-{class}-t {id}-{class}-d\">\
         <title id=\"{id}-{class}-t\">{}</title><desc id=\"{id}-{class}-d\">{}</desc>\n{}</svg>",
        Escaped(title),
        Escaped(about),
        drawing.body
    );
}
