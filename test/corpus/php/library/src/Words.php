<?php
namespace Acme;
final class Words {}
