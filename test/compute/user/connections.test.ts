import { holdForOrdinaryUser } from '../../support/ordinary-user.ts'

holdForOrdinaryUser([
  {
    file: 'resources/terminals/isolations.test.ts',
    skips: 'SKIP terminals of every isolation:',
  },
  { file: 'compute/network/kept-connections.test.ts', skips: 'SKIP the networks of servers:' },
  { file: 'compute/network/outbound.test.ts', skips: 'SKIP what leaves a server:' },
])
