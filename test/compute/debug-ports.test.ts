import { expect, test } from 'bun:test'
import { debugPortsOf } from '../../src/compute/local/ports.ts'

test.each([
  ['node --inspect server.js', [9229, 6499]],
  ['node --inspect=9230 server.js', [9230]],
  ['node --inspect-brk=0.0.0.0:9231 server.js', [9231]],
  ['node --inspect-wait=[::1]:9232 server.js', [9232]],
  ['node --inspect-port=9233 server.js', [9233]],
  ['deno run --inspect=127.0.0.1:9234 main.ts', [9234]],
  ['bun --inspect=localhost:6500/prefix index.ts', [6500]],
  ['bun --inspect=/prefix index.ts', [9229, 6499]],
  ['--max-old-space-size=100 --inspect=9235', [9235]],
  ['python3 -m debugpy --listen 0.0.0.0:5678 app.py', [5678]],
  ['python3 -X frozen_modules=off -m debugpy --listen 5679 -m flask run --port 8000', [5679]],
  ['/usr/bin/python3 /venv/lib/debugpy/adapter --for-server 40000 --host 127.0.0.1 --port 5680', [5680]],
  ['java -agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=*:5005 -jar app.jar', [5005]],
  ['java -Xrunjdwp:transport=dt_socket,server=y,address=5006 Main', [5006]],
  ['/root/go/bin/dlv debug --headless --listen=:2345 ./cmd', [2345]],
  ['ruby /usr/bin/rdbg --open --port 12345 -c -- rails s', [12345]],
  ['node server.js --port 8000', []],
  ['python3 -m uvicorn --port 8000 app:app', []],
  ['node /srv/dlv/server.js --port 8000', []],
  ['node inspect.js --inspector', []],
])('the debugger ports of %s', (command, ports) => {
  expect(debugPortsOf(command.split(' '))).toEqual(ports)
})
