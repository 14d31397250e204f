//! Chromium, spoken to by the DevTools protocol over pipes: what a page looks like to who opens it.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::installed_file;
use crate::{PATIENCE, pause, until};

/// Debian's package.
const CHROMIUM: &str = "/usr/bin/chromium";

/// Chromium reads descriptor 3 and writes 4: its standard input and output, under other numbers.
const TO_PIPES: &str = "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1";

/// One page of a browser of its own. It is killed when it is dropped.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    sent: u64,
    session: String,
    /// The server whose pages are looked at, as `http://127.0.0.1:9090`.
    origin: Option<String>,
    /// What went wrong on the page, and what it asked the network for.
    complaints: Vec<String>,
    _folder: TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Browser {
    /// Starts it with a window of so many pixels; nothing where it is not installed, which is said.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start(width: u32, height: u32) -> Option<Self> {
        Self::start_by(&[], width, height)
    }

    /// The same by a program that becomes it, `nsenter` with its words.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start_by(words: &[&str], width: u32, height: u32) -> Option<Self> {
        if !installed_file(CHROMIUM) {
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new("sh");
        command.args(["-c", TO_PIPES, "sh"]).args(words);
        command.args([CHROMIUM, "--headless", "--remote-debugging-pipe"]);
        // Root has no sandbox, and what is opened is ours. The rest makes pictures alike on all machines.
        command.args(["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]);
        command.args(["--disable-background-networking", "--disable-component-update", "--hide-scrollbars"]);
        command.args(["--force-color-profile=srgb", "--font-render-hinting=none", "--disable-lcd-text"]);
        command.arg(format!("--user-data-dir={}", folder.path().display()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("a shell");
        let commands = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (said, messages) = channel();
        std::thread::spawn(move || {
            for message in output.split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { return };
                // Nobody listens to a page that is closed.
                drop(said.send(message));
            }
        });
        let (session, complaints) = (String::new(), Vec::new());
        let origin = None;
        let mut browser =
            Self { child, commands, messages, sent: 0, session, origin, complaints, _folder: folder };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        browser.session = attached["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.resize(width, height);
        Some(browser)
    }

    /// Makes the window so large.
    pub fn resize(&mut self, width: u32, height: u32) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// As on a `screen` or in `print`, and `light` or `dark`.
    pub fn medium(&mut self, medium: &str, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({"media": medium, "features": features}));
    }

    /// Opens a file, to its end.
    pub fn open(&mut self, file: &Path) {
        let url = format!("file://{}", file.display());
        self.call("Page.navigate", json!({"url": url}));
        self.wait(|message| message["method"] == "Page.loadEventFired");
    }

    /// Opens a page of a server; what is asked of others is a complaint.
    pub fn visit(&mut self, server: SocketAddr, path: &str) {
        let origin = format!("http://{server}");
        let url = format!("{origin}{path}");
        self.origin = Some(origin);
        self.call("Page.navigate", json!({"url": url}));
        self.wait(|message| message["method"] == "Page.loadEventFired");
    }

    /// Types into what has the focus.
    pub fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", json!({"text": text}));
    }

    /// Presses a key, by its name and its number. The name of a letter is the letter.
    pub fn press(&mut self, key: &str, number: u32) {
        let text = match key {
            "Enter" => "\r",
            letter if letter.len() == 1 => letter,
            _ => "",
        };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let event =
                json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": number, "text": text});
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Chooses files for the field that an expression of JavaScript is, as its user would in a dialog.
    ///
    /// # Panics
    /// When there is no such field.
    pub fn choose(&mut self, field: &str, files: &[&Path]) {
        let found = self.call("Runtime.evaluate", json!({"expression": field}));
        let id = found["result"]["objectId"].as_str().expect("a field").to_owned();
        self.call("DOM.setFileInputFiles", json!({"objectId": id, "files": files}));
    }

    /// Waits until an expression of JavaScript is true.
    pub fn wait_until(&mut self, expression: &str) {
        until(expression, || {
            let holds = self.evaluate(expression) == true;
            if !holds {
                pause(Duration::from_millis(50));
            }
            holds.then_some(())
        });
    }

    /// What an expression of JavaScript comes to.
    ///
    /// # Panics
    /// When it throws.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let words = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", words);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}\n{answer}");
        answer["result"]["value"].clone()
    }

    /// A picture of the whole page, as PNG.
    ///
    /// # Panics
    /// When it is none.
    pub fn picture(&mut self) -> Vec<u8> {
        self.picture_by(json!({"format": "png", "captureBeyondViewport": true}))
    }

    /// A picture of the page down to so many pixels, or to its end.
    ///
    /// # Panics
    /// When it is none.
    pub fn picture_of_top(&mut self, height_max: u32) -> Vec<u8> {
        let size =
            self.evaluate("[innerWidth, Math.max(innerHeight, document.documentElement.scrollHeight)]");
        let height = size[1].as_u64().expect("a number").min(height_max.into());
        let clip = json!({"x": 0, "y": 0, "width": size[0], "height": height, "scale": 1});
        self.picture_by(json!({"format": "png", "captureBeyondViewport": true, "clip": clip}))
    }

    fn picture_by(&mut self, words: Value) -> Vec<u8> {
        let answer = self.call("Page.captureScreenshot", words);
        STANDARD.decode(answer["data"].as_str().expect("a picture")).expect("base64")
    }

    /// The share of the pixels, from 0 to 1, that two pictures differ in by more than `step` of 255 in a colour; 1 where
    /// they have not the same size. They are compared on a 4 × 4 raster, so that the edges of letters do not count.
    pub fn difference(&mut self, one: &[u8], other: &[u8], step: u8) -> f64 {
        let pictures = [one, other].map(|picture| STANDARD.encode(picture));
        let script = r"(async () => {
            const pixels = [];
            for (const data of PICTURES) {
                const image = new Image();
                image.src = 'data:image/png;base64,' + data;
                await image.decode();
                const canvas = new OffscreenCanvas(Math.ceil(image.width / 4), Math.ceil(image.height / 4));
                // In memory: what another process draws may not be there yet where the machine is busy.
                const context = canvas.getContext('2d', { willReadFrequently: true });
                context.imageSmoothingQuality = 'high';
                context.drawImage(image, 0, 0, canvas.width, canvas.height);
                pixels.push([image.width, image.height, context.getImageData(0, 0, canvas.width, canvas.height).data]);
            }
            const [[width, height, one], [w, h, other]] = pixels;
            if (width !== w || height !== h) return 1;
            let count = 0;
            for (let at = 0; at < one.length; at += 4) {
                const apart = [0, 1, 2].some(c => Math.abs(one[at + c] - other[at + c]) > STEP);
                count += apart ? 1 : 0;
            }
            return count / (one.length / 4);
        })()";
        // Pictures come last: their Base64 may hold any word.
        let script =
            script.replace("STEP", &step.to_string()).replace("PICTURES", &json!(pictures).to_string());
        self.evaluate(&script).as_f64().expect("a number")
    }

    /// Errors on the console, exceptions, and whatever was asked of the network, so far.
    pub fn complaints(&mut self) -> &[String] {
        // What was said before the answer to this has been heard.
        self.evaluate("0");
        &self.complaints
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.sent += 1;
        let id = self.sent;
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.commands.write_all(format!("{message}\0").as_bytes()).expect("the browser listens");
        let answer = self.wait(|message| message["id"] == id);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    fn wait(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        // A browser takes its time to start where machines are busy.
        let end = Instant::now() + 6 * PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let message = match self.messages.recv_timeout(left) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => panic!("the browser does not answer"),
                Err(RecvTimeoutError::Disconnected) => panic!("the browser has ended"),
            };
            self.hear(&message);
            if is_it(&message) {
                return message;
            }
        }
    }

    fn hear(&mut self, message: &Value) {
        let parameters = &message["params"];
        let is_bad = match message["method"].as_str().unwrap_or_default() {
            "Log.entryAdded" => parameters["entry"]["level"] == "error",
            "Runtime.consoleAPICalled" => parameters["type"] == "error" || parameters["type"] == "assert",
            "Runtime.exceptionThrown" => true,
            "Network.requestWillBeSent" => {
                let url = parameters["request"]["url"].as_str().unwrap_or_default();
                let is_own = self.origin.as_ref().is_some_and(|origin| {
                    url.strip_prefix(&**origin).is_some_and(|rest| rest.starts_with('/'))
                });
                !is_own && !url.starts_with("file:") && !url.starts_with("data:")
            }
            _ => false,
        };
        if is_bad {
            self.complaints.push(parameters.to_string());
        }
    }
}
