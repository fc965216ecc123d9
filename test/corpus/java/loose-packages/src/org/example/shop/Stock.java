package org.example.shop;

class Stock {
  static final String NAME = "sold here";
}
