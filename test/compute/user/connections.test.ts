import { holdForOrdinaryUser } from '../../support/ordinary-user.ts'

holdForOrdinaryUser([
  {
    file: 'resources/terminals/isolations.test.ts',
    skips: 'SKIP terminals of every isolation:',
  },
  { file: 'compute/network/outbound.test.ts', skips: 'SKIP what leaves a server:' },
])
