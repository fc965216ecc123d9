<?php echo 'never';
