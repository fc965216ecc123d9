import { holdForOrdinaryUser } from '../../support/ordinary-user.ts'
import { everyCombination } from '../../support/thorough.ts'

// Output passes between sandboxd and its commands, where the user has no part.
holdForOrdinaryUser([
  {
    file: 'compute/bubblewrap.test.ts',
    tests: everyCombination ? '' : '^bubblewrap (?!output |a command without a timeout )',
    skips: 'SKIP bubblewrap:',
  },
])
