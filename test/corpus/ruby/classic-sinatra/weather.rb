require 'sinatra'
get('/') { 'it rains' }
