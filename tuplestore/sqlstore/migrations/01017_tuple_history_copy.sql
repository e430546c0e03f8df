-- +goose NO TRANSACTION
-- +goose Up
INSERT INTO tuple_history (tenant_number, object, relation, subject, subject_relation, condition, context, expires_at, created_rev, created_at, created_by, deleted_rev)
SELECT (SELECT h.tenant_number FROM tenant_heads AS h WHERE h.tenant_id = t.tenant_id), object_type || ':' || object_id, relation, CASE WHEN relation = '' THEN '' ELSE subject_type || ':' || subject_id END, subject_relation,
       condition, context, expires_at, created_rev, created_at, created_by, deleted_rev
FROM relation_tuple_history_old AS t WHERE TRUE
ON CONFLICT DO NOTHING;
