-- The texts $1 as literals of SQL, in their order: psql puts a report's variables into it in the same way.
SELECT quote_literal(v.value) AS literal FROM unnest($1::text[]) WITH ORDINALITY AS v (value, place) ORDER BY v.place
