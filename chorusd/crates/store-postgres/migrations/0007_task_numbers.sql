-- Each node numbers its tasks in another range of 1,000,000,000 numbers: ids of tasks are given without asking others.
ALTER TABLE nodes ADD COLUMN task_range bigint NOT NULL GENERATED ALWAYS AS IDENTITY (MINVALUE 0 START WITH 0);
