package org.example.shop;

class Import {
  public static void main(String[] args) {}
}
