//! Writes the seeds and tokens of a target where libFuzzer finds them: `write_seeds TARGET FOLDER`.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use pointsman_fuzzing::TARGETS;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let (Some(name), Some(folder)) = (arguments.next(), arguments.next().map(PathBuf::from)) else {
        return Err("usage: write_seeds TARGET FOLDER".into());
    };
    let target = TARGETS.iter().find(|target| target.name == name).ok_or("no such target")?;
    let seeds = folder.join("seeds");
    fs::create_dir_all(&seeds)?;
    for (number, seed) in (target.seeds)().iter().enumerate() {
        fs::write(seeds.join(format!("{number:03}")), seed)?;
    }
    let quoted = |token: &str| token.bytes().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
    let lines = target.tokens.iter().map(|token| format!("\"{}\"\n", quoted(token)));
    fs::write(folder.join("tokens"), lines.collect::<String>())?;
    Ok(())
}
