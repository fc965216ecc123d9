use std::io::{Read, Write};

fn main() {
    let port = std::env::var("PORT").unwrap_or("8080".into());
    let listener = std::net::TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let _ = stream.read(&mut [0u8; 4096]);
        let body = "metrics";
        let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
    }
}
