#!/bin/bash
# ps-plans.sh - Browse local and submitted plans with their status
#
# Environment:
#   POPSTASH_API - API base URL (default: http://localhost:4001/api)
#   PLANS_DIR    - Local plans directory (default: plans)
#
# Dependencies: jq, curl
set -e

POPSTASH_API="${POPSTASH_API:-http://localhost:4001/api}"
PLANS_DIR="${PLANS_DIR:-plans}"

echo "=== Local Plans ==="
echo ""

if [[ -d "$PLANS_DIR" ]]; then
  for PLAN_DIR in "$PLANS_DIR"/*/; do
    if [[ -d "$PLAN_DIR" ]]; then
      PLAN_NAME=$(basename "$PLAN_DIR")
      STEP_COUNT=$(ls -1 "$PLAN_DIR"step-*.md 2>/dev/null | wc -l | tr -d ' ')
      
      # Check if this plan has been submitted (by title match)
      # API returns an array, so we extract the first match's id
      SUBMITTED=$(curl -sf "$POPSTASH_API/plans?title=$PLAN_NAME" | jq -r '.[0].id // empty')
      
      if [[ -n "$SUBMITTED" ]]; then
        # Get step status from API
        STEPS_INFO=$(curl -sf "$POPSTASH_API/plans/$SUBMITTED/steps")
        TOTAL=$(echo "$STEPS_INFO" | jq 'length')
        COMPLETED=$(echo "$STEPS_INFO" | jq '[.[] | select(.status == "completed")] | length')
        FAILED=$(echo "$STEPS_INFO" | jq '[.[] | select(.status == "failed")] | length')
        
        if [[ "$FAILED" -gt 0 ]]; then
          echo "  $PLAN_NAME/  [submitted] $COMPLETED/$TOTAL steps (has failures)"
        elif [[ "$COMPLETED" -eq "$TOTAL" ]]; then
          echo "  $PLAN_NAME/  [completed] $TOTAL/$TOTAL steps"
        else
          echo "  $PLAN_NAME/  [in_progress] $COMPLETED/$TOTAL steps"
        fi
      else
        echo "  $PLAN_NAME/  [not submitted] $STEP_COUNT steps"
      fi
    fi
  done
else
  echo "  No plans/ directory found"
fi

echo ""
echo "=== Submitted Plans (PopStash) ==="
echo ""

# Get all plans from PopStash
PLANS=$(curl -sf "$POPSTASH_API/plans" 2>/dev/null || echo "[]")

if [[ "$PLANS" == "[]" ]]; then
  echo "  No plans in PopStash"
else
  echo "$PLANS" | jq -r '.[] | "\(.id) \(.title)"' | while read -r PLAN_ID PLAN_TITLE; do
    STEPS_INFO=$(curl -sf "$POPSTASH_API/plans/$PLAN_ID/steps")
    TOTAL=$(echo "$STEPS_INFO" | jq 'length')
    COMPLETED=$(echo "$STEPS_INFO" | jq '[.[] | select(.status == "completed")] | length')
    FAILED=$(echo "$STEPS_INFO" | jq '[.[] | select(.status == "failed")] | length')
    
    if [[ "$FAILED" -gt 0 ]]; then
      echo "  $PLAN_TITLE  [has failures] $COMPLETED/$TOTAL steps  (id: $PLAN_ID)"
    elif [[ "$COMPLETED" -eq "$TOTAL" ]]; then
      echo "  $PLAN_TITLE  [completed] $TOTAL/$TOTAL steps"
    else
      echo "  $PLAN_TITLE  [in_progress] $COMPLETED/$TOTAL steps  (id: $PLAN_ID)"
    fi
  done
fi
