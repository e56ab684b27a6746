// SPDX-License-Identifier: Apache-2.0
//! ONNX Runtime's C library without Python: a driver of `sonde bench` (the protocol is in docs/benchmarking.md),
//! and with `--once MODEL INPUTS.safetensors THREADS` the whole program. The library is the one that
//! ORT_DYLIB_PATH names.

use std::error::Error;
use std::fs;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use ort::session::{builder::GraphOptimizationLevel, Session, SessionInputValue};
use ort::value::{DynValue, Tensor};
use safetensors::{Dtype, SafeTensors};

type Result<T> = std::result::Result<T, Box<dyn Error>>;
type Feed = Vec<(String, DynValue)>;

fn numbers<const N: usize, T>(bytes: &[u8], from: fn([u8; N]) -> T) -> Vec<T> {
    bytes.chunks_exact(N).map(|part| from(part.try_into().unwrap())).collect()
}

fn read_inputs(path: &Path) -> Result<Feed> {
    let bytes = fs::read(path)?;
    let file = SafeTensors::deserialize(&bytes)?;
    let mut feed = Feed::new();
    for (name, view) in file.tensors() {
        let shape: Vec<i64> = view.shape().iter().map(|&d| d as i64).collect();
        let value = match view.dtype() {
            Dtype::F32 => Tensor::from_array((shape, numbers(view.data(), f32::from_le_bytes)))?.into_dyn(),
            Dtype::I64 => Tensor::from_array((shape, numbers(view.data(), i64::from_le_bytes)))?.into_dyn(),
            Dtype::I32 => Tensor::from_array((shape, numbers(view.data(), i32::from_le_bytes)))?.into_dyn(),
            other => return Err(format!("input '{name}' is {other:?}, which this driver does not read").into()),
        };
        feed.push((name.to_string(), value));
    }
    Ok(feed)
}

fn load(model: &str, threads: usize) -> Result<Session> {
    let session = Session::builder(&ort::init().build()?)?
        .with_optimization_level(GraphOptimizationLevel::Level3)?
        .with_intra_threads(threads)?
        .with_inter_threads(1)?
        .commit_from_file(model)?;
    Ok(session)
}

fn views(feed: &Feed) -> Vec<(String, SessionInputValue<'_>)> {
    feed.iter().map(|(name, value)| (name.clone(), SessionInputValue::from(value))).collect()
}

/// The library does not tell; whoever chose it may, in ORT_VERSION.
fn version() -> String {
    std::env::var("ORT_VERSION").unwrap_or_default()
}

/// The largest difference of all f32 outputs to those in a file.
fn difference(session: &mut Session, feed: &Feed, reference: &Path) -> Result<f64> {
    let bytes = fs::read(reference)?;
    let file = SafeTensors::deserialize(&bytes)?;
    let names: Vec<String> = session.outputs().iter().map(|o| o.name().to_string()).collect();
    let outputs = session.run(views(feed))?;
    let mut largest = 0f64;
    for name in names {
        let expected = numbers(file.tensor(&name)?.data(), f32::from_le_bytes);
        let (_, values) = outputs[name.as_str()].try_extract_tensor::<f32>()?;
        if values.len() != expected.len() {
            return Err(format!("output '{name}' has {} elements, not {}", values.len(), expected.len()).into());
        }
        for (a, b) in values.iter().zip(&expected) {
            largest = largest.max(f64::from((a - b).abs()));
        }
    }
    Ok(largest)
}

fn peak_memory() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).ok_or("VmHWM is not there")?;
    let kilobytes: u64 = line.split_whitespace().nth(1).ok_or("VmHWM is empty")?.parse()?;
    Ok(kilobytes * 1024)
}

#[derive(Default)]
struct Driver {
    model: String,
    threads: usize,
    paths: Vec<PathBuf>,
    reference: PathBuf,
    feeds: Vec<Feed>,
    session: Option<Session>,
}

impl Driver {
    /// Whether that was a setting: those get no answer.
    fn setting(&mut self, word: &str, value: &str) -> Result<bool> {
        match word {
            "model" => self.model = value.to_string(),
            "threads" => self.threads = value.parse()?,
            "inputs" => self.paths.push(Path::new(value).with_extension("safetensors")),
            "forget" => {
                self.paths.clear();
                self.feeds.clear();
            }
            "reference" => self.reference = PathBuf::from(value),
            "label" | "option" | "preprocess" | "image" => {}
            "instances" if value == "1" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn run(&mut self, count: usize) -> Result<String> {
        let session = self.session.as_mut().ok_or("nothing is loaded")?;
        let mut answer = String::from("times");
        for i in 0..count {
            let inputs = views(&self.feeds[i % self.feeds.len()]);
            let start = Instant::now();
            let outputs = session.run(inputs)?;
            let ns = start.elapsed().as_nanos();
            drop(outputs);
            answer.push_str(&format!(" {ns}"));
        }
        Ok(answer)
    }

    fn command(&mut self, word: &str, value: &str) -> Result<String> {
        for path in &self.paths[self.feeds.len()..] {
            self.feeds.push(read_inputs(path)?);
        }
        match word {
            "load" => {
                let start = Instant::now();
                self.session = Some(load(&self.model, self.threads)?);
                Ok(format!("loaded {} {}", start.elapsed().as_nanos(), version()))
            }
            "warmup" | "run" => self.run(value.parse()?),
            "outputs" => {
                let session = self.session.as_mut().ok_or("nothing is loaded")?;
                Ok(format!("outputs difference {:e}", difference(session, &self.feeds[0], &self.reference)?))
            }
            "memory" => Ok(format!("memory {}", peak_memory()?)),
            "program" => {
                let words = [std::env::current_exe()?, "--once".into(), self.model.clone().into(), self.paths[0].clone()];
                let words: Vec<String> = words.iter().map(|w| w.display().to_string()).collect();
                Ok(format!("program {}\t{}", words.join("\t"), self.threads))
            }
            "full" => Ok("unsupported this program decodes no images".to_string()),
            _ => Ok(format!("unsupported '{word}'")),
        }
    }

    fn answer(&mut self, line: &str) -> Option<String> {
        let (word, value) = line.split_once(' ').unwrap_or((line, ""));
        match self.setting(word, value) {
            Ok(true) => None,
            Ok(false) => Some(self.command(word, value).unwrap_or_else(|e| format!("error {e}"))),
            Err(e) => Some(format!("error {e}")),
        }
    }
}

fn once(model: &str, inputs: &str, threads: &str) -> Result<()> {
    let feed = read_inputs(Path::new(inputs))?;
    let mut session = load(model, threads.parse()?)?;
    let names: Vec<String> = session.outputs().iter().map(|o| o.name().to_string()).collect();
    let outputs = session.run(views(&feed))?;
    for name in names {
        let (_, values) = outputs[name.as_str()].try_extract_tensor::<f32>()?;
        let best = values.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(i, _)| i);
        println!("{name}: largest at {best}");
    }
    Ok(())
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().collect();
    if words.len() == 5 && words[1] == "--once" {
        return once(&words[2], &words[3], &words[4]);
    }
    if std::env::var_os("ORT_DYLIB_PATH").is_none() {
        println!("missing npm install onnxruntime-node, and ORT_DYLIB_PATH set to its libonnxruntime.so.1");
        return Ok(());
    }
    let mut driver = Driver { threads: 1, ..Driver::default() };
    for line in io::stdin().lock().lines() {
        let line = line?;
        if line == "quit" {
            break;
        }
        if let Some(reply) = driver.answer(&line) {
            println!("{}", reply.replace('\n', " "));
            io::stdout().flush()?;
        }
    }
    Ok(())
}
