//! Generates a home of the CLI with as many transcripts as a heavy user has. The same seed gives the same corpus.
//!
//! Every line has the shape of the real CLI's (2.1.113): chained messages of several lines each, parallel calls,
//! results that occur in a line twice (for the model, and structured), snapshots, attachments, and the rest. The words
//! are drawn from a vocabulary with a few frequent and many rare ones, in English and Chinese.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;

pub(crate) struct Shape {
    pub(crate) seed: u64,
    pub(crate) bytes: u64,
    pub(crate) sessions: usize,
    pub(crate) projects: usize,
}

impl Shape {
    /// The corpus of the promised figures.
    pub(crate) const FULL: Self = Self {
        seed: 6,
        bytes: 1 << 30,
        sessions: 2000,
        projects: 40,
    };
}

/// Sizes of the largest sessions of the full corpus, in MiB.
const LARGE: [u64; 6] = [60, 50, 45, 40, 35, 30];

/// Words that occur in one message each, to search for something rare.
pub(crate) const RARE_WORD: &str = "quetzalcoatlus";
pub(crate) const RARE_CHINESE: &str = "翼龙化石";

/// Writes the corpus into `home/projects`. Returns its size.
pub(crate) fn generate(home: &Path, shape: &Shape) -> io::Result<u64> {
    let mut random = Random(shape.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let vocabulary = vocabulary(&mut random);
    let scale = shape.bytes as f64 / (1u64 << 30) as f64;
    let large: Vec<u64> = LARGE
        .iter()
        .map(|size| ((size << 20) as f64 * scale) as u64)
        .collect();
    let rest = shape.bytes - large.iter().sum::<u64>();
    // Most sessions are short, a few are long.
    let weights: Vec<f64> = (large.len()..shape.sessions)
        .map(|_| 0.05 + random.unit().powi(4) * 4.0)
        .collect();
    let weight: f64 = weights.iter().sum();
    let mut total = 0;
    for session in 0..shape.sessions {
        let size = match large.get(session) {
            Some(size) => *size,
            None => (rest as f64 * weights[session - large.len()] / weight) as u64,
        };
        let project = session % shape.projects;
        let cwd = format!("/home/user/project-{project:02}");
        let folder = home.join("projects").join(cwd.replace('/', "-"));
        fs::create_dir_all(&folder)?;
        let start = 1_760_000_000_000 + (session as i64 * 7_919_000) % (30 * 86_400_000);
        let mut writer = Session::new(&mut random, &vocabulary, cwd, start, session);
        let file = File::create(folder.join(format!("{}.jsonl", writer.id)))?;
        total += writer.write(&mut BufWriter::with_capacity(1 << 20, file), size)?;
    }
    Ok(total)
}

/// xorshift64*: small, fast, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 16) % limit
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn uuid(&mut self) -> String {
        let (a, b) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            a >> 32,
            a >> 16 & 0xffff,
            a & 0xfff,
            b >> 52,
            b & 0xffff_ffff_ffff
        )
    }
}

/// Eight thousand made-up words; low numbers are drawn far more often.
fn vocabulary(random: &mut Random) -> Vec<String> {
    const SYLLABLES: [&str; 24] = [
        "ta", "re", "mi", "so", "con", "ver", "lo", "gin", "ser", "pa", "ge", "que", "ry", "in", "dex", "er",
        "ror", "fi", "le", "to", "ken", "str", "eam", "un",
    ];
    let common = "the a to of and in is for file error test function return value with this that page login server request";
    let mut words: Vec<String> = common.split(' ').map(str::to_owned).collect();
    while words.len() < 8000 {
        let count = 2 + random.below(3);
        words.push((0..count).map(|_| SYLLABLES[random.below(24) as usize]).collect());
    }
    words
}

const CHINESE: [&str; 24] = [
    "登录页面",
    "数据库",
    "请修复",
    "这个错误",
    "测试用例",
    "服务器",
    "已经完成",
    "函数返回",
    "文件路径",
    "我需要",
    "接下来",
    "检查",
    "用户名",
    "密码",
    "缓存",
    "性能优化",
    "重新构建",
    "配置文件",
    "并且",
    "然后运行",
    "没有问题",
    "首先",
    "查看日志",
    "更新文档",
];

const TOOLS: [&str; 6] = ["Bash", "Read", "Edit", "Grep", "Write", "Glob"];
const MODELS: [&str; 3] = [
    "claude-sonnet-4-6",
    "claude-opus-4-6",
    "claude-haiku-4-5-20251001",
];

struct Session<'a> {
    random: &'a mut Random,
    vocabulary: &'a [String],
    cwd: String,
    id: String,
    number: usize,
    time: i64,
    parent: Option<String>,
    line: String,
    messages: u64,
}

impl<'a> Session<'a> {
    fn new(random: &'a mut Random, vocabulary: &'a [String], cwd: String, time: i64, number: usize) -> Self {
        let id = random.uuid();
        Self {
            random,
            vocabulary,
            cwd,
            id,
            number,
            time,
            parent: None,
            line: String::new(),
            messages: 0,
        }
    }

    fn write(&mut self, out: &mut impl io::Write, size: u64) -> io::Result<u64> {
        let mut written = 0;
        while written < size {
            self.line.clear();
            self.turn();
            out.write_all(self.line.as_bytes())?;
            written += self.line.len() as u64;
        }
        out.flush()?;
        Ok(written)
    }

    /// A prompt, and the agent's steps.
    fn turn(&mut self) {
        let chinese = self.random.below(3) == 0;
        let count = 5 + self.random.below(60);
        let mut prompt = String::new();
        self.prose(&mut prompt, count, chinese);
        if self.messages == 0 && self.number == 777 {
            prompt = format!("Tell me about {RARE_WORD} and 关于{RARE_CHINESE}的事. {prompt}");
        }
        let prompt = escaped(&prompt);
        self.begin();
        let _ = writeln!(
            self.line,
            r#""type":"user","message":{{"role":"user","content":"{prompt}"}},{}"permissionMode":"default",{}}}"#,
            self.identity(),
            self.common()
        );
        let message = self.parent.clone().unwrap_or_default();
        let _ = writeln!(
            self.line,
            r#"{{"type":"file-history-snapshot","messageId":"{message}","snapshot":{{"messageId":"{message}","trackedFileBackups":{{"src/file-{}.rs":{{"backupFileName":null,"version":1}}}},"timestamp":"{}"}},"isSnapshotUpdate":false}}"#,
            self.random.below(30),
            stamp(self.time)
        );
        let steps = 1 + self.random.below(8);
        for step in 0..steps {
            self.step(step + 1 == steps, chinese);
        }
        let _ = writeln!(
            self.line,
            r#"{{"type":"last-prompt","lastPrompt":"{}","sessionId":"{}"}}"#,
            &prompt.chars().take(40).collect::<String>().replace('\\', ""),
            self.id
        );
    }

    /// One model message of several lines, and the results of its calls.
    fn step(&mut self, last: bool, chinese: bool) {
        self.messages += 1;
        let (a, b) = (self.random.next(), self.random.next());
        let message = format!("msg_{a:016x}");
        let request = format!("req_{b:016x}");
        let usage = format!(
            r#"{{"input_tokens":{},"cache_creation_input_tokens":{},"cache_read_input_tokens":{},"output_tokens":{},"service_tier":"standard","cache_creation":{{"ephemeral_1h_input_tokens":0,"ephemeral_5m_input_tokens":0}}}}"#,
            self.random.below(500),
            self.random.below(4000),
            self.random.below(90_000),
            1 + self.random.below(2000)
        );
        let model = MODELS[self.number % MODELS.len()];
        let mut said = String::new();
        let count = 10 + self.random.below(120);
        self.prose(&mut said, count, chinese);
        let thinks = self.random.below(3) == 0;
        let said = escaped(&said);
        if thinks {
            let block =
                format!(r#"{{"type":"thinking","thinking":"{said}","signature":"{a:016x}{b:016x}"}}"#);
            self.assistant(&block, &message, &request, model, &usage);
        } else {
            self.assistant(
                &format!(r#"{{"type":"text","text":"{said}"}}"#),
                &message,
                &request,
                model,
                &usage,
            );
        }
        if last {
            return;
        }
        let mut calls = Vec::new();
        for call in 0..=self.random.below(5) / 3 {
            let tool = TOOLS[self.random.below(6) as usize];
            let id = format!("toolu_{a:016x}{call}");
            let path = format!("{}/src/file-{}.rs", self.cwd, self.random.below(60));
            let mut argument = String::new();
            self.prose(&mut argument, 8, false);
            let input = match tool {
                "Bash" => format!(r#"{{"command":"cargo test {argument}","description":"{argument}"}}"#),
                "Edit" => format!(
                    r#"{{"file_path":"{path}","old_string":"{argument}","new_string":"{argument} x"}}"#
                ),
                "Write" => format!(r#"{{"file_path":"{path}","content":"{argument}"}}"#),
                "Read" => format!(r#"{{"file_path":"{path}"}}"#),
                _ => format!(r#"{{"pattern":"{argument}","path":"{path}"}}"#),
            };
            self.assistant(
                &format!(r#"{{"type":"tool_use","id":"{id}","name":"{tool}","input":{input}}}"#),
                &message,
                &request,
                model,
                &usage,
            );
            calls.push((tool, id, path, self.parent.clone()));
        }
        for (tool, id, path, call) in calls {
            self.result(tool, &id, &path, call);
        }
    }

    fn assistant(&mut self, block: &str, message: &str, request: &str, model: &str, usage: &str) {
        self.begin();
        let _ = writeln!(
            self.line,
            r#""message":{{"id":"{message}","type":"message","role":"assistant","model":"{model}","content":[{block}],"stop_reason":"tool_use","stop_sequence":null,"usage":{usage}}},"requestId":"{request}","type":"assistant",{}{}}}"#,
            self.identity(),
            self.common()
        );
    }

    fn result(&mut self, tool: &str, id: &str, path: &str, call: Option<String>) {
        self.parent = call;
        let long = self.random.below(12) == 0;
        let lines = if long {
            200 + self.random.below(700)
        } else {
            4 + self.random.below(60)
        };
        let mut output = String::new();
        for number in 0..lines {
            let _ = write!(output, "{number:>5}\\t");
            let count = 3 + self.random.below(9);
            self.prose(&mut output, count, false);
            output.push_str(if number % 7 == 0 {
                " \\\"quoted\\\" {};\\n"
            } else {
                "\\n"
            });
        }
        let structured = match tool {
            "Bash" => format!(r#"{{"stdout":"{output}","stderr":"","interrupted":false,"isImage":false}}"#),
            "Edit" | "Write" => format!(
                r#"{{"filePath":"{path}","oldString":"a","newString":"b","originalFile":"{output}","structuredPatch":[{{"oldStart":1,"oldLines":2,"newStart":1,"newLines":2,"lines":[" a","-b","+c"]}}],"userModified":false,"replaceAll":false}}"#
            ),
            "Read" => format!(
                r#"{{"type":"text","file":{{"filePath":"{path}","content":"{output}","numLines":{lines},"startLine":1,"totalLines":{lines}}}}}"#
            ),
            _ => format!(
                r#"{{"mode":"content","numFiles":0,"filenames":[],"content":"{output}","numLines":{lines}}}"#
            ),
        };
        let shown = if matches!(tool, "Edit" | "Write") {
            format!("The file {path} has been updated successfully.")
        } else {
            output
        };
        self.begin();
        let _ = writeln!(
            self.line,
            r#""type":"user","message":{{"role":"user","content":[{{"tool_use_id":"{id}","type":"tool_result","content":"{shown}","is_error":false}}]}},{}"toolUseResult":{structured},{}}}"#,
            self.identity(),
            self.common()
        );
    }

    /// The beginning of a line, which makes it the parent of the next one.
    fn begin(&mut self) {
        match self.parent.take() {
            Some(parent) => {
                let _ = write!(self.line, r#"{{"parentUuid":"{parent}","isSidechain":false,"#);
            }
            None => self.line.push_str(r#"{"parentUuid":null,"isSidechain":false,"#),
        }
        self.parent = Some(self.random.uuid());
        self.time += 200 + self.random.below(9000).cast_signed();
    }

    fn identity(&self) -> String {
        format!(
            r#""uuid":"{}","timestamp":"{}","#,
            self.parent.as_deref().unwrap_or_default(),
            stamp(self.time)
        )
    }

    fn common(&self) -> String {
        format!(
            r#""userType":"external","entrypoint":"cli","cwd":"{}","sessionId":"{}","version":"2.1.113","gitBranch":"main""#,
            self.cwd, self.id
        )
    }

    fn prose(&mut self, out: &mut String, count: u64, chinese: bool) {
        for position in 0..count {
            if chinese {
                out.push_str(CHINESE[self.random.below(24) as usize]);
                if position % 6 == 5 {
                    out.push('，');
                }
                continue;
            }
            let skewed = self.random.unit().powi(3);
            let word = &self.vocabulary[(skewed * self.vocabulary.len() as f64) as usize];
            if position > 0 {
                out.push(' ');
            }
            out.push_str(word);
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

fn stamp(time: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(time).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
