//! Answers' heads: where the codec accepts one, a second reading reads the same, and so does the client.

use pointsman_http::{AnswerTo, Framing, HeadLimits, Refusal, ResponseHead};

use crate::random::cuts;
use crate::second_reading::{self, Reading, as_sent};

pub(crate) const TOKENS: &[&str] = &[
    "\r\n",
    "\r\n\r\n",
    "\n",
    "\r",
    " ",
    "\t",
    ":",
    ",",
    "\0",
    "\r\n ",
    "HTTP/1.0 ",
    "HTTP/1.1 ",
    "100",
    "101",
    "200 OK",
    "204",
    "304",
    "099",
    "600",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: ",
    "chunked",
    "identity",
    "Content-Length: 5\r\n",
    "Content-Length: ",
    "0",
    "5, 5",
    "-1",
    "Connection: close\r\n",
    "Connection: keep-alive\r\n",
    "Connection: ",
    "x-a",
    "set-cookie",
    "Keep-Alive: timeout=1\r\n",
    "Upgrade: h2c\r\n",
    "Set-Cookie: a=b\r\n",
    "Trailer: ",
    "Content_Length: 5\r\n",
    "X-A: 1\r\n",
    "é",
];

/// Panics where a property does not hold.
///
/// # Panics
/// With the property.
pub fn check(input: &[u8]) {
    for to in [AnswerTo::Other, AnswerTo::Head] {
        let verdict = parse(input, to);
        if let Ok(Some(head)) = &verdict {
            let reading = second_reading::answer(input).expect("the second reading accepts it too");
            agree(head, &reading, input, to);
            forwarded_is_read_alike(head, input, to);
        }
        in_pieces(input, &verdict, to);
    }
}

fn parse(input: &[u8], to: AnswerTo) -> Result<Option<ResponseHead>, Refusal> {
    let mut head = ResponseHead::default();
    Ok(head.parse(input, to, &HeadLimits::default())?.then_some(head))
}

fn agree(head: &ResponseHead, reading: &Reading<'_>, input: &[u8], to: AnswerTo) {
    let (version, status) = (reading.first[0], reading.first[1]);
    assert_eq!(head.status().to_string().as_bytes(), status);
    let lines: Vec<_> = head.lines().iter().map(|line| (line.name(input), line.value(input))).collect();
    assert_eq!(lines, reading.lines);
    assert_eq!(head.head_bytes(), reading.head_bytes);
    let may_not_announce = head.status() < 200 || head.status() == 204;
    let framing = match head.status() {
        _ if may_not_announce || to == AnswerTo::Head => Framing::None,
        304 => Framing::None,
        _ => reading.announced.unwrap_or(Framing::UntilClose),
    };
    assert_eq!(head.framing(), framing);
    assert_eq!(head.keeps_alive(), reading.keeps_alive(version) && framing != Framing::UntilClose);
    let mut lengths = 0;
    for line in head.lines() {
        let name = line.name(input).to_ascii_lowercase();
        lengths += usize::from(name == b"content-length");
        let repeats = name == b"content-length" && lengths > 1;
        let frames = matches!(&name[..], b"content-length" | b"transfer-encoding");
        assert_eq!(line.dropped, reading.ends_here(&name) || repeats || may_not_announce && frames);
    }
}

/// The client reads in what it is sent the answer that came.
fn forwarded_is_read_alike(head: &ResponseHead, input: &[u8], to: AnswerTo) {
    let mut out = Vec::new();
    head.forward(input, b"", &mut out);
    let next = parse(&out, to).expect("the forwarded head is accepted").expect("it is whole");
    assert_eq!(next.head_bytes(), out.len(), "nothing follows the forwarded head");
    assert_eq!(next.status(), head.status());
    assert_eq!(next.framing(), head.framing());
    let kept = head.lines().iter().filter(|line| !line.dropped);
    let kept: Vec<_> =
        kept.map(|line| (line.name(input), as_sent(line.name(input), line.value(input)))).collect();
    let sent: Vec<_> = next.lines().iter().map(|line| (line.name(&out), line.value(&out))).collect();
    assert_eq!(sent, kept);
    let mut again = Vec::new();
    next.forward(&out, b"", &mut again);
    assert_eq!(again, out, "a second hop changes nothing");
}

fn in_pieces(input: &[u8], whole: &Result<Option<ResponseHead>, Refusal>, to: AnswerTo) {
    let head_bytes = whole.as_ref().ok().and_then(|head| Some(head.as_ref()?.head_bytes()));
    let mut used = ResponseHead::default();
    for cut in cuts(input, head_bytes.unwrap_or(input.len())) {
        let found = used.parse(&input[..cut], to, &HeadLimits::default());
        match (whole, head_bytes) {
            (_, Some(head_bytes)) => {
                assert_eq!(found, Ok(cut >= head_bytes), "{cut} bytes of an accepted head")
            }
            (Err(_), _) => assert_ne!(found, Ok(true), "{cut} bytes are accepted, all are refused"),
            _ => assert_eq!(found, Ok(false), "{cut} bytes of an unfinished head"),
        }
        if found == Ok(true) {
            let fresh = parse(&input[..cut], to).expect("as before").expect("as before");
            assert_eq!(
                format!("{used:?}"),
                format!("{fresh:?}"),
                "something is left over from an earlier head"
            );
        }
    }
}
