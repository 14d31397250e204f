// A server that says what net/http, encoding/json, encoding/xml and the form parsers of Go read.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// The reading: field of the request to the values that an application gets.
type reading map[string][]string

type order struct {
	Total  any    `json:"total"`
	Status string `json:"status"`
}

type orderXML struct {
	XMLName xml.Name `xml:"order"`
	Total   float64  `xml:"total"`
	Status  string   `xml:"status"`
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println("port", listener.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(listener, http.HandlerFunc(serve)))
}

func serve(w http.ResponseWriter, r *http.Request) {
	read := reading{}
	body, _ := io.ReadAll(r.Body)
	read.add("size", strconv.Itoa(len(body)))
	head(read, r)
	documents(read, decoded(r, body))
	form(read, r, body)
	text, _ := json.Marshal(read)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Reader", "go")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.Write(text)
}

func (read reading) add(field string, values ...string) {
	read[field] = append(read[field], values...)
}

func head(read reading, r *http.Request) {
	read.add("path", r.URL.Path, path.Clean("/"+r.URL.Path))
	read.add("host", stripPort(r.Host))
	query := r.URL.Query()
	read.add("query.my_plan", query["my_plan"]...)
	if query.Has("auth") {
		read.add("query.auth", query.Get("auth"))
	}
	for _, cookie := range r.Cookies() {
		if cookie.Name == "my_plan" {
			read.add("cookie.my_plan", cookie.Value)
		}
	}
	if cookie, err := r.Cookie("auth"); err == nil {
		read.add("cookie.auth", cookie.Value)
	}
	if key := r.Header.Get("X-Key"); key != "" {
		read.add("header.x-key", key)
	}
	for _, name := range []string{"x-role", "x-user", "x-scope"} {
		read.add("header."+name, r.Header.Values(name)...)
		read.add("header."+name, r.Trailer.Values(name)...)
	}
}

// The name without its port, as ServeMux takes it.
func stripPort(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

// Most middleware undoes gzip before an application reads.
func decoded(r *http.Request, body []byte) []byte {
	if !strings.EqualFold(r.Header.Get("Content-Encoding"), "gzip") {
		return body
	}
	reader, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return body
	}
	plain, _ := io.ReadAll(io.LimitReader(reader, 1<<20))
	return plain
}

func documents(read reading, body []byte) {
	var first order
	if json.NewDecoder(bytes.NewReader(body)).Decode(&first) == nil {
		read.add("json.status", first.Status)
		number(read, first.Total)
	}
	var members map[string]any
	if json.Unmarshal(body, &members) == nil {
		if status, is := members["status"].(string); is {
			read.add("json.status", status)
		}
		number(read, members["total"])
	}
	var document orderXML
	if xml.NewDecoder(bytes.NewReader(body)).Decode(&document) == nil {
		read.add("xml.total", strconv.FormatFloat(document.Total, 'g', -1, 64))
		read.add("xml.status", document.Status)
	}
}

func number(read reading, value any) {
	switch value := value.(type) {
	case float64:
		read.add("json.total", strconv.FormatFloat(value, 'g', -1, 64))
	case string:
		if parsed, err := strconv.ParseFloat(value, 64); err == nil {
			read.add("json.total", strconv.FormatFloat(parsed, 'g', -1, 64))
		}
	}
}

func form(read reading, r *http.Request, body []byte) {
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	if strings.HasPrefix(strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Type"))), "multipart/") {
		r.ParseMultipartForm(1 << 20)
	}
	r.ParseForm()
	// FormValue reads the query where the body has none.
	read.add("form.my_plan", r.PostForm["my_plan"]...)
	if r.MultipartForm != nil {
		read.add("form.my_plan", r.MultipartForm.Value["my_plan"]...)
		r.MultipartForm.RemoveAll()
	}
	if r.PostForm.Has("auth") {
		read.add("form.auth", r.PostForm.Get("auth"))
	}
}
