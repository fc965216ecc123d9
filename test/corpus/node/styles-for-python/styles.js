require('node:fs').writeFileSync('site.css', 'body{color:teal}')
