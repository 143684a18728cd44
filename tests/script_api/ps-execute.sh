#!/bin/bash
# ps-execute.sh - Submit a plan to PopStash and execute it
# Usage:
#   ps-execute <plan-name>           # Submit and execute a plan from plans/<plan-name>/
#   ps-execute --resume <plan_id>    # Resume an existing plan
#
# Environment:
#   POPSTASH_API - API base URL (default: http://localhost:4001/api)
#   PLANS_DIR    - Local plans directory (default: plans)
#
# Dependencies: jq, curl, claude
set -e

POPSTASH_API="${POPSTASH_API:-http://localhost:4001/api}"
PLANS_DIR="${PLANS_DIR:-plans}"

# Parse arguments
if [[ "$1" == "--resume" ]]; then
  if [[ -z "$2" ]]; then
    echo "Usage: ps-execute --resume <plan_id>"
    exit 1
  fi
  PLAN_ID="$2"
  echo "Resuming plan: $PLAN_ID"
else
  PLAN_NAME="$1"
  
  if [[ -z "$PLAN_NAME" ]]; then
    echo "Usage:"
    echo "  ps-execute <plan-name>           # Submit and execute"
    echo "  ps-execute --resume <plan_id>    # Resume existing plan"
    exit 1
  fi
  
  PLAN_DIR="$PLANS_DIR/$PLAN_NAME"
  PLAN_FILE="$PLAN_DIR/plan.md"
  
  if [[ ! -f "$PLAN_FILE" ]]; then
    echo "Error: Plan not found at $PLAN_FILE"
    echo "Run /ps-plan $PLAN_NAME to create it first."
    exit 1
  fi
  
  # Read plan.md content
  PLAN_CONTENT=$(cat "$PLAN_FILE")
  
  # Submit plan to PopStash
  echo "Submitting plan to PopStash..."
  PLAN_RESPONSE=$(curl -sf -X POST "$POPSTASH_API/plans" \
    -H "Content-Type: application/json" \
    -d "{\"title\": \"$PLAN_NAME\", \"body\": $(echo "$PLAN_CONTENT" | jq -Rs .)}")
  
  PLAN_ID=$(echo "$PLAN_RESPONSE" | jq -r '.id')
  
  if [[ -z "$PLAN_ID" || "$PLAN_ID" == "null" ]]; then
    echo "Error: Failed to create plan in PopStash"
    exit 1
  fi
  
  echo "Plan created: $PLAN_ID"
  
  # Find and submit all step files (preserving step numbers from filenames)
  echo "Ingesting steps into PopStash..."
  STEP_COUNT=0
  for STEP_FILE in "$PLAN_DIR"/step-*.md; do
    if [[ -f "$STEP_FILE" ]]; then
      STEP_NUM=$(basename "$STEP_FILE" | sed 's/step-\([0-9]*\)\.md/\1/')
      STEP_CONTENT=$(cat "$STEP_FILE")
      
      # Pass step_number explicitly to preserve file-based ordering
      curl -sf -X POST "$POPSTASH_API/plans/$PLAN_ID/steps" \
        -H "Content-Type: application/json" \
        -d "{\"description\": $(echo "$STEP_CONTENT" | jq -Rs .), \"step_number\": $STEP_NUM, \"created_by\": \"user\"}" > /dev/null
      
      echo "  Added step $STEP_NUM"
      STEP_COUNT=$((STEP_COUNT + 1))
    fi
  done
  
  echo ""
  echo "NOTE: Your $STEP_COUNT steps have been ingested as a starting point."
  echo "      During execution, agents may discover and insert additional steps."
  echo "      Use '/ps-plans' to see the final step count after execution."
  echo ""
  echo "Starting execution..."
fi

# Step execution loop
while true; do
  # Get next pending step via HTTP API (marks it as in_progress)
  RESPONSE=$(curl -sf "$POPSTASH_API/plans/$PLAN_ID/next-step")
  STATUS=$(echo "$RESPONSE" | jq -r '.status')
  
  if [[ "$STATUS" == "complete" ]]; then
    echo ""
    echo "All steps complete!"
    exit 0
  fi
  
  STEP_ID=$(echo "$RESPONSE" | jq -r '.step_id')
  STEP_DESC=$(echo "$RESPONSE" | jq -r '.description')
  STEP_NUM=$(echo "$RESPONSE" | jq -r '.step_number')
  
  echo ""
  echo "Executing step $STEP_NUM..."
  echo "(Plan ID: $PLAN_ID - use '/ps-execute --resume $PLAN_ID' to resume if interrupted)"
  echo ""
  
  # Spawn fresh Claude session with step content as prompt
  claude -p "Execute this task:

$STEP_DESC

Instructions:
- When complete, call update_step with step_id='$STEP_ID', status='completed', and a brief result summary.
- If you cannot complete the task, call update_step with status='failed' and explain why in the result.
- If you discover additional work is needed, you can insert a new step using add_step with after_step=$STEP_NUM.
  The new step will execute after this one completes. Only add steps for truly necessary work."

  # Check step status after execution
  STEP_STATUS=$(curl -sf "$POPSTASH_API/steps/$STEP_ID" | jq -r '.status')
  
  if [[ "$STEP_STATUS" == "failed" ]]; then
    echo ""
    echo "Step $STEP_NUM failed."
    echo "Fix the issue and run '/ps-execute --resume $PLAN_ID' to continue."
    exit 1
  fi

  echo "Step $STEP_NUM complete"
done
