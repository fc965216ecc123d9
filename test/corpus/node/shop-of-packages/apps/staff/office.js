require('node:http')
  .createServer((_, response) => response.end('office'))
  .listen(process.env.PORT)
