import { holdForOrdinaryUser } from '../../support/ordinary-user.ts'

holdForOrdinaryUser([
  { file: 'compute/network/server-network.test.ts', skips: 'SKIP the networks of servers:' },
  { file: 'compute/network/inside.test.ts', skips: 'SKIP what programs on a server reach:' },
  { file: 'compute/network/server.test.ts', skips: 'SKIP what a server reaches:' },
  { file: 'compute/network/redirect.test.ts', skips: 'SKIP the networks of servers:' },
  { file: 'compute/network/start.test.ts', skips: 'SKIP the networks of servers:' },
])
