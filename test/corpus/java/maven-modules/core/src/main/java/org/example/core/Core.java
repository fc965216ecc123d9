package org.example.core;

public class Core {
  public static final String TEXT = "from the core";
}
