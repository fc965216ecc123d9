import { holdForOrdinaryUser } from '../../support/ordinary-user.ts'

holdForOrdinaryUser([
  {
    file: 'resources/terminals/isolations.test.ts',
    least: 1,
    skips: 'SKIP terminals of every isolation:',
  },
  { file: 'compute/network/kept-connections.test.ts', least: 13, skips: 'SKIP the networks of servers:' },
  { file: 'compute/network/outbound.test.ts', least: 12, skips: 'SKIP what leaves a server:' },
])
