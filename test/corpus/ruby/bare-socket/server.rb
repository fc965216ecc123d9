require 'socket'
server = TCPServer.new(ENV.fetch('HOST'), ENV.fetch('PORT').to_i)
loop do
  client = server.accept
  client.gets
  client.write "HTTP/1.1 200 OK\r\ncontent-length: 10\r\nconnection: close\r\n\r\nby a socket"[0..-2]
  client.close
end
