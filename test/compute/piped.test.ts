import { describe } from 'bun:test'
import { contract } from './conformance.ts'

describe('a server that is reached by pipes and calls alone', () =>
  contract('piped', { output: true, end: true }))
