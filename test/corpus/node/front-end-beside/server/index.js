const { readFileSync } = require('node:fs')
const { createServer } = require('node:http')
const { join } = require('node:path')

const pages = join(__dirname, '..', 'client', 'dist')

createServer((request, response) => {
  if (request.url === '/degrees') return response.end('21')
  response.setHeader('content-type', 'text/html')
  response.end(readFileSync(join(pages, 'index.html')))
}).listen(process.env.PORT)
