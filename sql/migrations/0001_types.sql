-- Schemas, the extension the exclusion constraints need, and the words of the domain as enums.
CREATE EXTENSION IF NOT EXISTS btree_gist;

COMMENT ON SCHEMA ledger IS 'What Perennial remembers. Private: read the schema perennial instead.';
CREATE SCHEMA perennial;
COMMENT ON SCHEMA perennial IS 'The stable surface for other people''s SQL.';

CREATE TYPE ledger.environment AS ENUM ('Production', 'Sandbox');
CREATE TYPE ledger.outcome AS ENUM ('verified', 'rejected', 'indeterminate', 'none');
CREATE TYPE ledger.state AS ENUM ('active', 'grace_period', 'billing_retry', 'awaiting_renewal', 'expired', 'revoked');
CREATE TYPE ledger.reason AS ENUM (
    'voluntary', 'billing_error', 'price_increase', 'product_unavailable', 'other', 'unknown',
    'refund', 'family', 'renewal', 'replacement');
CREATE TYPE ledger.event_kind AS ENUM (
    'subscription.started', 'trial.started', 'trial.converted', 'subscription.renewed', 'subscription.recovered',
    'subscription.reactivated', 'subscription.expired', 'trial.expired', 'auto_renew.disabled', 'auto_renew.enabled',
    'billing.retry_entered', 'billing.grace_entered', 'billing.grace_expired', 'product.changed',
    'product.change_scheduled', 'product.change_withdrawn', 'price_increase.pending', 'price_increase.accepted',
    'refund.granted', 'refund.reversed', 'family.revoked', 'subscription.extended', 'subscription.shortened',
    'purchase.made', 'purchase.refunded', 'ownership.assigned', 'ownership.transferred');
CREATE TYPE ledger.ownership_policy AS ENUM ('transfer', 'keep', 'transfer_if_lapsed');
CREATE TYPE ledger.scope AS ENUM ('read', 'write', 'admin');
