import { holdForOrdinaryUser } from '../../support/ordinary-user.ts'

holdForOrdinaryUser([
  { file: 'compute/network/server-network.test.ts', least: 7, skips: 'SKIP the networks of servers:' },
  { file: 'compute/network/inside.test.ts', least: 8, skips: 'SKIP what programs on a server reach:' },
  { file: 'compute/network/server.test.ts', least: 4, skips: 'SKIP what a server reaches:' },
  { file: 'compute/network/redirect.test.ts', least: 4, skips: 'SKIP the networks of servers:' },
  { file: 'compute/network/start.test.ts', least: 5, skips: 'SKIP the networks of servers:' },
])
