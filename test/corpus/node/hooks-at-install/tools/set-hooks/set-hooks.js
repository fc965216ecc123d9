#!/usr/bin/env node
require('node:fs').writeFileSync('.hooks', 'set')
