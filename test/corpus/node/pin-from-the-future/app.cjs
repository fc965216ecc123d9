require('node:http')
  .createServer((_, response) => response.end('still here'))
  .listen(process.env.PORT)
