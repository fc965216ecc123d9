import { holdForOrdinaryUser } from '../../support/ordinary-user.ts'
import { everyCombination } from '../../support/thorough.ts'

// How commands run, end and are limited depends on the user in one way for every isolation: under bubblewrap it is tried
// whole, here what this isolation alone promises.
holdForOrdinaryUser([
  {
    file: 'compute/landlock.test.ts',
    tests: everyCombination ? '' : '^landlock (a command|isolation|the end by kill -9 with sandboxd) ',
    skips: 'SKIP landlock:',
  },
])
