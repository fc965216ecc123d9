import { createServer } from 'node:http'
import { priceOf } from '@shop/prices'

createServer((_, response) => response.end(`tea costs ${priceOf('tea')}`)).listen(process.env.PORT)
