<?php echo 'sent: ', htmlspecialchars($_GET['text'] ?? '');
