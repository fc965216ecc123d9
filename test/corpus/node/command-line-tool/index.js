#!/usr/bin/env node
console.log(process.argv.slice(2).join(' ').split(/\s+/).length)
