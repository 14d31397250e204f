<?php
// A server that says what PHP reads: superglobals and json_decode.

$read = [];

function add(string $field, mixed $value): void {
    global $read;
    if (is_string($value) || is_int($value) || is_float($value)) {
        $read[$field][] = (string) $value;
    } elseif (is_array($value)) {
        // Lists of parameters: in_array() and foreach find these.
        foreach ($value as $key => $one) {
            if (is_int($key) && is_scalar($one)) {
                $read[$field][] = (string) $one;
            }
        }
    }
}

$uri = $_SERVER["REQUEST_URI"];
$path = explode("?", $uri, 2)[0];
add("path", rawurldecode($path));
$parsed = parse_url($uri, PHP_URL_PATH);
add("path", is_string($parsed) ? rawurldecode($parsed) : null);
add("host", $_SERVER["HTTP_HOST"] ?? "");
add("query.my_plan", $_GET["my_plan"] ?? null);
add("query.auth", $_GET["auth"] ?? null);
add("cookie.my_plan", $_COOKIE["my_plan"] ?? null);
add("cookie.auth", $_COOKIE["auth"] ?? null);
add("form.my_plan", $_POST["my_plan"] ?? null);
add("form.auth", $_POST["auth"] ?? null);
foreach (["x-role", "x-user", "x-scope", "x-key"] as $name) {
    add("header.$name", $_SERVER["HTTP_" . strtoupper(strtr($name, "-", "_"))] ?? null);
}

$body = file_get_contents("php://input");
add("size", strlen($body));
$plain = strcasecmp($_SERVER["HTTP_CONTENT_ENCODING"] ?? "", "gzip") === 0 ? @gzdecode($body, 1 << 20) : false;
if ($plain === false) {
    $plain = $body;
}
$json = json_decode($plain, true);
if (is_array($json)) {
    $total = $json["total"] ?? null;
    if (is_numeric($total)) {
        add("json.total", $total + 0);
    }
    add("json.status", is_string($json["status"] ?? null) ? $json["status"] : null);
}
$text = json_encode($read, JSON_INVALID_UTF8_SUBSTITUTE);
header("Content-Type: application/json");
header("X-Reader: php");
header("Content-Length: " . strlen($text));
echo $text;
