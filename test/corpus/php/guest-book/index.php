<?php
$db = new PDO('sqlite::memory:');
$db->exec('create table entry (text)');
$db->prepare('insert into entry values (?)')->execute(['hello from the book']);
echo $db->query('select text from entry')->fetchColumn(), "\n";
