//! Response curves: throughput and busy cpus by the number of cores.
//!
//! The sensor's constants were chosen on [`Family::tuned`]; the other families were looked at by
//! nothing but the test.

/// A small generator of random numbers (xorshift64*), so that cases repeat.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn unit(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// About normal, with mean 0 and deviation 1.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Gunther's universal scalability law.
    Scalability,
    /// A serial part.
    Amdahl,
    /// A lock whose holder is slowed by those that wait.
    Lock,
    /// Memory bandwidth that is used up, then wasted.
    Bandwidth,
    /// Each further node costs.
    Nodes,
    /// Only so many clients.
    Clients,
    /// Gains from more cache, then losses from coherence.
    Cache,
}

impl Family {
    pub fn tuned() -> [Family; 2] {
        [Family::Scalability, Family::Amdahl]
    }

    pub fn unseen() -> [Family; 5] {
        [
            Family::Lock,
            Family::Bandwidth,
            Family::Nodes,
            Family::Clients,
            Family::Cache,
        ]
    }
}

pub struct Curve {
    pub name: String,
    /// Throughput with 1, 2, ... cores.
    pub throughput: Vec<f64>,
    /// So many cpus can be busy at most.
    pub clients: f64,
    /// The deviation of a measurement, as a share.
    pub noise: f64,
}

impl Curve {
    pub fn new(family: Family, seed: u64) -> Curve {
        let mut random = Random::new(seed * 64 + family as u64 + 1);
        let sizes = [2, 4, 8, 12, 16, 24, 32, 48, 64];
        let cores: usize = sizes[(random.unit() * sizes.len() as f64) as usize];
        let total = cores as f64;
        let (a, b, c) = (random.unit(), random.unit(), random.unit());
        let mut clients = f64::INFINITY;
        let mut one = |n: f64| -> f64 {
            match family {
                Family::Scalability => {
                    n / (1.0 + 0.2 * a * (n - 1.0) + 0.02 * b * b * n * (n - 1.0))
                }
                Family::Amdahl => 1.0 / (0.5 * a * a + (1.0 - 0.5 * a * a) / n),
                Family::Lock => {
                    let knee = 1.0 + a * total;
                    let within = n.min(knee);
                    within / (1.0 + (0.02 + 0.3 * b) * (n - knee).max(0.0))
                }
                Family::Bandwidth => {
                    let full = (0.1 + 0.8 * a) * total;
                    let over = (n / full - 1.0).max(0.0);
                    n.min(full) / (1.0 + 0.5 * b * over)
                }
                Family::Nodes => {
                    let per = (total / 4.0).max(1.0).floor();
                    let nodes = (n / per).ceil();
                    n / (1.0 + (nodes - 1.0) * (0.05 + 0.8 * a)) / (1.0 + 0.05 * b * n)
                }
                Family::Clients => {
                    clients = 1.0 + (a * total).floor();
                    n.min(clients) * (1.0 - 0.3 * b * (n - clients).max(0.0) / total)
                }
                Family::Cache => {
                    let gain = 1.0 + 0.6 * a / (1.0 + (-(n - total * 0.3) / 2.0).exp());
                    n * gain / (1.0 + 0.05 * b * n + 0.01 * c * n * n)
                }
            }
        };
        let throughput: Vec<f64> = (1..=cores).map(|n| 1000.0 * one(n as f64)).collect();
        Curve {
            name: format!("{family:?} {seed}, {cores} cores"),
            throughput,
            clients,
            noise: 0.01 + 0.04 * random.unit(),
        }
    }

    pub fn cores(&self) -> usize {
        self.throughput.len()
    }

    pub fn best(&self) -> f64 {
        self.throughput.iter().copied().fold(0.0, f64::max)
    }

    pub fn at(&self, cores: usize) -> f64 {
        self.throughput[cores - 1]
    }

    pub fn busy(&self, cores: usize) -> f64 {
        self.clients.min(cores as f64)
    }
}
