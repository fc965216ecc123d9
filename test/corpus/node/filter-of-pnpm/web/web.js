require('node:http')
  .createServer((_, response) => response.end('filtered'))
  .listen(process.env.PORT)
