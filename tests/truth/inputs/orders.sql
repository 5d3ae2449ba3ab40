CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, item TEXT, amount INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {scale})
INSERT INTO orders SELECT i, i * 7919 % 977, 'item ' || (i * 31 % 211), i * 13 % 1000 FROM n;
CREATE INDEX by_customer ON orders (customer);
SELECT item, sum(amount), count(DISTINCT customer) FROM orders GROUP BY item ORDER BY 2 DESC LIMIT 5;
SELECT count(*) FROM orders a JOIN orders b ON a.customer = b.customer AND a.id < b.id AND b.amount < 20;
